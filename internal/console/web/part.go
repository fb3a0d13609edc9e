package web

import "prxm.uz/proxima/internal/console/inventory"

// partSentence says what the pages of a cluster show while an inventory is stored in part; "" while none is. Whether
// the rest still comes is not known: its sender may have been revoked meanwhile.
func partSentence(c inventory.Cluster) string {
	switch {
	case !c.PartlyApplied:
		return ""
	case c.Counted():
		return "An inventory is stored in part. The rest follows, or the next inventory replaces it; until then what is shown is a mixture of the last two."
	default:
		return "The first inventory is stored in part, and the lists show that part. The rest follows, or the next inventory replaces it."
	}
}

// noInventory says why there is nothing of an inventory to show.
func noInventory(c inventory.Cluster) (head, text string) {
	if c.PartlyApplied {
		return "The first inventory is stored in part", "What it holds stands here once one is stored whole."
	}
	return "No inventory yet", "The first one arrives within twice the sync interval after the collector enrolled."
}

// noWarnings says that no warning is stored, as far as that is known.
func noWarnings(c inventory.Cluster) string {
	if !c.Counted() {
		return "No inventory is stored whole yet, so whether there are warnings is not known."
	}
	return "The stored events hold no warning."
}
