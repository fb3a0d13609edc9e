package collector

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/internal/wire"
)

// Bounds of what is kept of free text.
const (
	maxAnnotationValue = 512
	maxAnnotations     = 32
	maxLabels          = 64
	maxText            = 1024
	redacted           = "[redacted]"
)

// scrubber removes credentials from annotations and messages (B-110). Its rules, in this order:
//
//  1. kubectl.kubernetes.io/last-applied-configuration is dropped: it repeats the whole object, with
//     the environment of its containers.
//  2. A value of more than 512 bytes is dropped.
//  3. The value of a key that speaks of a password, token, secret, credential or key is replaced.
//  4. A value that holds a private key, a JWT, a bearer or basic header, or a "password=" pair is replaced.
//  5. User and password in a URL are replaced, the rest of the value stays.
//  6. The first 32 annotations by name are kept.
type scrubber struct {
	key, value, userinfo *regexp.Regexp
}

func newScrubber() scrubber {
	return scrubber{
		key:      regexp.MustCompile(`(?i)(passw(or)?d|passphrase|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|signing[-_.]?key|auth(orization)?$|cookie)`),
		value:    regexp.MustCompile(`(?i)(-----BEGIN [A-Z ]*PRIVATE KEY|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.|\b(bearer|basic)\s+[A-Za-z0-9+/=._-]{8,}|(passw(or)?d|passphrase|secret|token|api[-_]?key|access[-_]?key)["']?\s*[=:]\s*\S|\bAKIA[0-9A-Z]{16}\b|\b(ghp|gho|ghs|glpat|pit|xox[abp])[_-][A-Za-z0-9_-]{8,})`),
		userinfo: regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s@"']*@`),
	}
}

func (s scrubber) annotations(in map[string]string) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		value := in[key]
		if key == "kubectl.kubernetes.io/last-applied-configuration" || len(value) > maxAnnotationValue {
			continue
		}
		if len(out) == maxAnnotations {
			break
		}
		switch {
		case value == "":
		case s.key.MatchString(key), s.value.MatchString(value):
			value = redacted
		default:
			value = s.text(value)
		}
		out[key] = value
	}
	return out
}

// text bounds a free text and takes user and password out of URLs in it.
func (s scrubber) text(text string) string {
	if strings.Contains(text, "@") {
		text = s.userinfo.ReplaceAllString(text, "${1}"+redacted+"@")
	}
	return clean(text, maxText)
}

// clean makes text fit for every database: UTF-8, no NUL, at most limit bytes.
func clean(text string, limit int) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	if len(text) <= limit {
		return text
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

func (s scrubber) meta(m *metav1.ObjectMeta) wire.Meta {
	labels := m.Labels
	if len(labels) > maxLabels {
		labels = map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(m.Labels))[:maxLabels] {
			labels[key] = m.Labels[key]
		}
	}
	return wire.Meta{
		Namespace: m.Namespace, Name: m.Name, UID: string(m.UID), CreatedAt: m.CreationTimestamp.UTC(),
		Labels: labels, Annotations: s.annotations(m.Annotations),
	}
}
