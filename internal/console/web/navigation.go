package web

import "prxm.uz/proxima/internal/console/access"

// navigationPart is one part of the navigation.
type navigationPart struct {
	Head    string
	Entries []navigationEntry
}

// navigationEntry is one link of the navigation.
type navigationEntry struct {
	Place string // what base.Place holds on the pages below it
	Name  string
	Path  string
	need  need
}

// navigation is the whole of it, in the order in which it is shown.
func navigation() []navigationPart {
	return []navigationPart{
		{"Fleet", []navigationEntry{
			{"clusters", "Clusters", "/clusters", need(access.HostsRead)},
			{"hosts", "Hosts", "/hosts", need(access.AgentsRead)},
			{"agents", "Agents", "/agents", need(access.AgentsRead)},
			{"install-tokens", "Install tokens", "/install-tokens", need(access.HostsWrite)},
		}},
		{"Administration", []navigationEntry{
			{"clients", "Clients", "/clients", need(access.ClientsRead)},
			{"roles", "Roles", "/roles", need(access.RolesRead)},
			{"users", "People", "/users", need(access.UsersRead)},
			{"audit", "Audit", "/audit", need(access.AuditRead)},
			{"settings", "Settings", "/settings", need(access.SettingsRead)},
		}},
	}
}

// navigationOf leaves out what the caller may not see.
func navigationOf(who access.Principal) []navigationPart {
	var out []navigationPart
	for _, part := range navigation() {
		var entries []navigationEntry
		for _, e := range part.Entries {
			if who.UserID != "" && (e.need == needSession || who.AllowsSomewhere(access.Permission(e.need))) {
				entries = append(entries, e)
			}
		}
		if len(entries) > 0 {
			out = append(out, navigationPart{part.Head, entries})
		}
	}
	return out
}
