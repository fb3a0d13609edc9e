package network

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TLSCure says what to do about a TLS handshake that failed; variable names the setting that takes the CA of this
// server. ok is false where err is of something else.
func TLSCure(err error, variable string) (cure string, ok bool) {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "check that this port speaks TLS", true
	}
	verify, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(verify.UnverifiedCertificates) == 0 {
		return "", false
	}
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &unknown):
		return "put the PEM of the issuing CA into a file and name it in " + variable + "; where you expect a public CA, an intercepting proxy is in between", true
	case errors.As(err, &name):
		return "use a name that the certificate is made out for (" + names(verify.UnverifiedCertificates[0]) + "), or renew it with this name", true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		c := invalid.Cert // may be one above the leaf
		return fmt.Sprintf("the certificate of %q is valid from %s to %s: renew it, or correct this machine's clock",
			c.Subject.String(), c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339)), true
	default:
		return "renew the certificate", true
	}
}

// names are what a certificate is made out for, the first five.
func names(c *x509.Certificate) string {
	all := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all[:min(len(all), 5)], ", ")
}
