package web

import "prxm.uz/proxima/internal/console/inventory"

// partSentence says what the pages of a cluster show while an inventory is stored in parts; "" while none is.
func partSentence(c inventory.Cluster) string {
	switch {
	case !c.PartlyApplied:
		return ""
	case c.Counted():
		return "An inventory is being stored now, part by part; until it is whole, what is shown is a mixture of the last two."
	default:
		return "The first inventory is being stored now, part by part; until it is whole, the lists show what is stored of it so far."
	}
}

// noInventory says why there is nothing of an inventory to show.
func noInventory(c inventory.Cluster) (head, text string) {
	if c.PartlyApplied {
		return "The first inventory is being stored", "What it holds stands here once it is whole."
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
