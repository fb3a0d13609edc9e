package wire

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// validate holds an inventory without its lists to this package's limits: what the database could not
// store, or what no API server would have answered, is refused as a whole with ErrMalformed.
func (inv *Inventory) validate() error {
	switch {
	case inv.Epoch < 1 || inv.Sync < 1 || inv.Epoch > MaxOrder || inv.Sync > MaxOrder:
		return fmt.Errorf("%w: inventory has epoch %d and sync %d, both go from 1 to %d", ErrMalformed, inv.Epoch, inv.Sync, int64(MaxOrder))
	case inv.ClusterUID == "":
		return fmt.Errorf("%w: inventory has no clusterUid", ErrMalformed)
	}
	for _, s := range []string{inv.ClusterName, inv.ClusterSlug, inv.ClusterUID, inv.Cluster.Version, inv.Cluster.Platform, inv.Cluster.Provider} {
		if err := checkText("inventory", s, 4*MaxName); err != nil {
			return err
		}
	}
	if len(inv.Kinds) > 64 {
		return fmt.Errorf("%w: inventory reports %d kinds, 64 are allowed", ErrMalformed, len(inv.Kinds))
	}
	for _, k := range inv.Kinds {
		if k.Kept < 0 || k.Total < 0 {
			return fmt.Errorf("%w: kind report: %d of %d objects kept", ErrMalformed, k.Kept, k.Total)
		}
		if err := firstError(
			checkText("kind report", string(k.Kind), MaxName), checkText("kind report", string(k.Unread), MaxName),
			checkText("kind report", k.Message, 4<<10),
		); err != nil {
			return err
		}
	}
	return nil
}

// validate is the same for what the object with this number in its list has.
func (m *Meta) validate(kind Kind, number int) error {
	if m.Name == "" {
		return fmt.Errorf("%w: %s: object %d has no name", ErrMalformed, kind, number)
	}
	return firstError(
		checkText(string(kind), m.Name, MaxName), checkText(string(kind), m.Namespace, MaxName), checkText(string(kind), m.UID, MaxName),
	)
}

// checkText refuses what PostgreSQL would not store: NUL, and text that is not UTF-8.
func checkText(where, s string, limit int) error {
	switch {
	case len(s) > limit:
		return fmt.Errorf("%w: %s: a text of %d bytes, %d are allowed", ErrMalformed, where, len(s), limit)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: %s: text is not UTF-8", ErrMalformed, where)
	case strings.IndexByte(s, 0) >= 0:
		return fmt.Errorf("%w: %s: text holds a NUL byte", ErrMalformed, where)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Validate tells a heartbeat from whatever else may land on its subject: a stream acknowledges to the
// subject that the publisher names, so JSON that lacks what every agent sends is [ErrMalformed].
func (h *Heartbeat) Validate() error { return sent("heartbeat", h.Capability, h.SentAt) }

// Validate is that of a heartbeat, for a status.
func (s *Status) Validate() error { return sent("status", s.Capability, s.SentAt) }

func sent(kind string, capability int, at time.Time) error {
	if capability < 1 || at.IsZero() {
		return fmt.Errorf("%w: %s without capability or sentAt", ErrMalformed, kind)
	}
	return nil
}
