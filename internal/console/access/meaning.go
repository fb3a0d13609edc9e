package access

// Meaning says in one sentence what a permission lets one do, and in which part of console.
type Meaning struct {
	Permission Permission
	Part       string
	Sentence   string
}

// Meanings has one of each permission, in the order of [Permissions].
func Meanings() []Meaning {
	const clusters, agents, clients, people, log, settings = "Clusters", "Agents", "Clients", "People", "Audit", "Settings"
	return []Meaning{
		{HostsRead, clusters, "See clusters with their inventory, and the attempts to add them."},
		{HostsWrite, clusters, "Add and remove clusters, accept a changed identity, mint and revoke install tokens."},
		{KubernetesRead, clusters, "Read from a cluster’s own API through Console, where live access is there."},
		{AgentsRead, agents, "See agents and hosts, and when each was last heard."},
		{AgentsWrite, agents, "Release, revoke and delete agents, and rotate their credentials."},
		{ClientsRead, clients, "See clients and their environments."},
		{ClientsWrite, clients, "Add, rename and delete clients and environments."},
		{UsersRead, people, "See who has an account, their roles and their API tokens."},
		{UsersWrite, people, "Add people, change, deactivate and reset their accounts, revoke their API tokens."},
		{RolesRead, people, "See roles and what they permit."},
		{RolesWrite, people, "Make, change and delete roles, give them to people and take them away."},
		{AuditRead, log, "Read the log of what was done."},
		{SettingsRead, settings, "See the configuration, the health and the metrics of Console itself."},
		{SettingsWrite, settings, "Change the settings of Console itself, of which there are none yet."},
	}
}
