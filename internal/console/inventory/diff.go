package inventory

import (
	"slices"
	"time"

	"prxm.uz/proxima/internal/wire"
)

// diff compares an inventory with the stored hashes. Rows that are equal are not written; rows that
// vanished are deleted, unless their kind was unread (its rows stay as they are) or its list was cut
// (they are marked unseen, and go once they were unseen for KeepUnseen).
func diff(c Cluster, got content, stored map[Key]Stored, receivedAt time.Time) Change {
	ch := Change{ClusterID: c.ID, UnseenSince: receivedAt}
	seen := make(map[Key]bool, len(got.rows)+len(got.same))
	for _, k := range got.same {
		if !seen[k] && !stored[k].UnseenSince.IsZero() {
			ch.Clear = append(ch.Clear, k)
		}
		seen[k] = true
	}
	for _, o := range got.rows {
		if seen[o.Key] {
			continue // an API server lists an object once; of several the stored one counts, else the first
		}
		seen[o.Key] = true
		old, ok := stored[o.Key]
		switch {
		case !ok || old.Hash != o.Hash:
			ch.Upsert = append(ch.Upsert, o)
		case !old.UnseenSince.IsZero():
			ch.Clear = append(ch.Clear, o.Key)
		}
	}
	reports := make(map[wire.Kind]wire.KindReport)
	for _, r := range got.inv.Kinds {
		reports[r.Kind] = r
	}
	// Rows of a kind that was never read under this fingerprint are those of the cluster before it.
	read := make(map[wire.Kind]bool)
	for _, k := range c.Kinds {
		read[k.Kind] = !k.ReadAt.IsZero()
	}
	for k, old := range stored {
		if seen[k] {
			continue
		}
		r, reported := reports[kindOf(k)]
		switch {
		case !read[kindOf(k)]:
			ch.Delete = append(ch.Delete, k)
		case !reported || r.Unread != "":
			// its rows stay as they are
		case r.Kept >= r.Total || old.unseenFor(receivedAt) > KeepUnseen:
			ch.Delete = append(ch.Delete, k)
		case old.UnseenSince.IsZero():
			ch.Unseen = append(ch.Unseen, k)
		}
	}
	ch.Counts = counts(seen, stored, ch.Delete)
	return ch
}

func (ch *Change) empty() bool { return ch.rows() == 0 }

func (ch *Change) rows() int {
	return len(ch.Upsert) + len(ch.Delete) + len(ch.Unseen) + len(ch.Clear)
}

// cut takes a part of at most n rows off the change.
func (ch *Change) cut(n int) Change {
	part := Change{ClusterID: ch.ClusterID, UnseenSince: ch.UnseenSince, Counts: ch.Counts}
	part.Upsert, ch.Upsert, n = cut(ch.Upsert, n)
	part.Delete, ch.Delete, n = cut(ch.Delete, n)
	part.Unseen, ch.Unseen, n = cut(ch.Unseen, n)
	part.Clear, ch.Clear, _ = cut(ch.Clear, n)
	return part
}

func cut[T any](list []T, n int) (part, rest []T, left int) {
	k := min(n, len(list))
	return list[:k], list[k:], n - k
}

// unseenFor is zero for a row that was in the last list.
func (s Stored) unseenFor(now time.Time) time.Duration {
	if s.UnseenSince.IsZero() {
		return 0
	}
	return now.Sub(s.UnseenSince)
}

// kindOf names the list of an inventory that a stored object comes from.
func kindOf(k Key) wire.Kind {
	switch k.Section {
	case SectionNodes:
		return wire.KindNodes
	case SectionNamespaces:
		return wire.KindNamespaces
	case SectionWorkloads:
		switch k.Kind {
		case "StatefulSet":
			return wire.KindStatefulSets
		case "DaemonSet":
			return wire.KindDaemonSets
		default:
			return wire.KindDeployments
		}
	case SectionPods:
		return wire.KindPods
	case SectionServices:
		return wire.KindServices
	case SectionEvents:
		return wire.KindEvents
	}
	return ""
}

// kindStates carries over since when the rows of an unread kind are, and what is known of kinds that
// this inventory does not mention.
func kindStates(before []KindState, now []wire.KindReport, receivedAt time.Time) []KindState {
	out := make([]KindState, 0, len(now))
	for _, r := range now {
		st := KindState{KindReport: r, ReadAt: receivedAt}
		if r.Unread != "" {
			st.ReadAt = time.Time{}
			if i := slices.IndexFunc(before, func(b KindState) bool { return b.Kind == r.Kind }); i >= 0 {
				st.ReadAt = before[i].ReadAt
			}
		}
		out = append(out, st)
	}
	for _, b := range before {
		reported := slices.ContainsFunc(now, func(r wire.KindReport) bool { return r.Kind == b.Kind })
		if !reported && len(out) < mostKinds {
			out = append(out, b)
		}
	}
	return out
}

// mostKinds bounds what is kept, whatever names the kinds have.
const mostKinds = 64

// counts counts the rows that are stored after the change.
func counts(seen map[Key]bool, stored map[Key]Stored, deleted []Key) Counts {
	var c Counts
	add := func(s Section, n int) {
		switch s {
		case SectionNodes:
			c.Nodes += n
		case SectionNamespaces:
			c.Namespaces += n
		case SectionWorkloads:
			c.Workloads += n
		case SectionPods:
			c.Pods += n
		case SectionServices:
			c.Services += n
		case SectionEvents:
			c.Events += n
		}
	}
	for k := range seen {
		add(k.Section, 1)
	}
	for k := range stored {
		if !seen[k] {
			add(k.Section, 1)
		}
	}
	for _, k := range deleted {
		add(k.Section, -1)
	}
	return c
}
