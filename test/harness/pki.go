package harness

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority whose files lie in a directory.
type Authority struct {
	dir  string
	name string
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes NAME.crt and NAME.key in dir.
func NewAuthority(dir, name, commonName string) (*Authority, error) {
	a := &Authority{dir: dir, name: name}
	template := certificateTemplate(pkix.Name{CommonName: commonName})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	cert, key, err := issue(filepath.Join(dir, name), template, nil)
	if err != nil {
		return nil, fmt.Errorf("make the authority %s: %w", name, err)
	}
	a.cert, a.key = cert, key
	return a, nil
}

// File is the PEM file of the authority's own certificate.
func (a *Authority) File() string { return filepath.Join(a.dir, a.name+".crt") }

// Server issues a certificate for a server with these names and addresses, and returns its files.
func (a *Authority) Server(name string, hosts ...string) (certFile, keyFile string, err error) {
	return a.server(name, certificateTemplate(pkix.Name{CommonName: name}), hosts)
}

// ServerUntil is Server with a certificate that ends at a given time.
func (a *Authority) ServerUntil(end time.Time, name string, hosts ...string) (certFile, keyFile string, err error) {
	template := certificateTemplate(pkix.Name{CommonName: name})
	template.NotAfter = end
	return a.server(name, template, hosts)
}

func (a *Authority) server(name string, template *x509.Certificate, hosts []string) (certFile, keyFile string, err error) {
	path := filepath.Join(a.dir, name)
	return path + ".crt", path + ".key", a.issueTemplate(name, template, hosts)
}

// issue makes NAME.crt and NAME.key, good for servers and clients.
func (a *Authority) issue(name string, subject pkix.Name, hosts ...string) error {
	return a.issueTemplate(name, certificateTemplate(subject), hosts)
}

func (a *Authority) issueTemplate(name string, template *x509.Certificate, hosts []string) error {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	if _, _, err := issue(filepath.Join(a.dir, name), template, a); err != nil {
		return fmt.Errorf("make the certificate %s: %w", name, err)
	}
	return nil
}

func certificateTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(365 * 24 * time.Hour),
	}
}

// issue signs the template by the authority, or by itself where that is nil.
func issue(path string, template *x509.Certificate, by *Authority) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if err := writePEM(path+".crt", "CERTIFICATE", der); err != nil {
		return nil, nil, err
	}
	return cert, key, writePrivateKey(path+".key", key)
}

// newKeyPair makes NAME.key and NAME.pub, with which service account tokens are
// signed and checked.
func newKeyPair(dir, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key pair %s: %w", name, err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("make the key pair %s: %w", name, err)
	}
	if err := writePEM(filepath.Join(dir, name+".pub"), "PUBLIC KEY", pub); err != nil {
		return err
	}
	return writePrivateKey(filepath.Join(dir, name+".key"), key)
}

func writePrivateKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
