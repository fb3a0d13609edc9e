package onboarding

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/install"
)

// lookupWithin bounds the lookup of the public URL's host: a page waits for it.
const lookupWithin = 2 * time.Second

// MethodManifest is the way of installing that takes kubectl and nothing else.
const MethodManifest = "manifest"

// Command is what an operator runs in the cluster.
type Command struct {
	Method string
	// Check prints which cluster kubectl speaks to, to be run first.
	Check string
	Text  string
	// Warnings say what stands against the address in the command.
	Warnings []string
}

// Command prints the command of an attempt. Where plainToken is "", a placeholder stands in its place
// . The caller needs hosts:read on the attempt.
func (s *Service) Command(ctx context.Context, p access.Principal, attemptID, plainToken string) (Command, error) {
	a, err := s.attempt(ctx, p, attemptID, access.HostsRead)
	if err != nil {
		return Command{}, err
	}
	if !a.ArchivedAt.IsZero() {
		return Command{}, archived(a)
	}
	c, err := install.Manifest(install.Params{
		ClusterName: a.DisplayName, ClusterSlug: a.Slug, BackendURL: s.PublicURL, Token: plainToken,
		ManifestBaseURL: s.PublicURL + "/install/cluster-agent",
	})
	if err != nil {
		return Command{}, fmt.Errorf("print the command of attempt %s: %w", a.ID, err)
	}
	return Command{Method: MethodManifest, Check: c.Lines[0], Text: c.String(), Warnings: s.adviseAddress(ctx)}, nil
}

// adviseAddress says what stands against the public URL as seen from a cluster elsewhere.
func (s *Service) adviseAddress(ctx context.Context) []string {
	const set = "Set PROXIMA_PUBLIC_URL to the address at which clusters reach this Console."
	u, err := url.Parse(s.PublicURL)
	if err != nil || u.Hostname() == "" {
		return []string{fmt.Sprintf("The address %q in this command is not a URL. %s", s.PublicURL, set)}
	}
	host := u.Hostname()
	var out []string
	if u.Scheme == "http" {
		out = append(out, "The address in this command is plain http: the install token crosses the network unencrypted.")
	}
	addresses := []netip.Addr{}
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, literal)
	} else {
		lookup, cancel := context.WithTimeout(ctx, lookupWithin)
		defer cancel()
		if addresses, err = s.Resolver.LookupNetIP(lookup, "ip", host); err != nil || len(addresses) == 0 {
			return append(out, fmt.Sprintf("The host %s in this command has no address that Console could look up. %s", host, set))
		}
	}
	kinds := map[string]bool{}
	for _, a := range addresses {
		a = a.Unmap()
		switch {
		case a.IsLoopback(), a.IsUnspecified():
			kinds["loopback"] = true
		case a.IsLinkLocalUnicast():
			kinds["link-local"] = true
		case a.IsPrivate():
			kinds["private"] = true
		}
	}
	switch {
	case kinds["loopback"]:
		out = append(out, fmt.Sprintf("The address %s in this command is a loopback one: inside a cluster it leads to the pod itself. %s", host, set))
	case kinds["link-local"]:
		out = append(out, fmt.Sprintf("The address %s in this command is a link-local one: it ends at the next router. %s", host, set))
	case kinds["private"]:
		out = append(out, fmt.Sprintf("Note: the address %s in this command is private. A cluster outside of that network does not reach it.", strings.TrimSpace(host)))
	}
	return out
}
