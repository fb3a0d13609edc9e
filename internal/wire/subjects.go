// Package wire owns what crosses the NATS connection between an agent and console: subjects,
// messages, their encoding and its limits. Both sides import it; it imports nothing of ours and
// decides nothing.
//
// All subjects end in the agent's id, which the agent's credential names literally, so an agent can
// neither publish nor read under the id of another:
//
//	inventory.<id>   agent → console  Inventory, zstd JSON, JetStream, last message per subject kept;
//	                                  once stored, its headers come back on _INBOX.<id>.stored
//	heartbeat.<id>   agent → console  Heartbeat, the leader alone
//	status.<id>      agent → console  Status, every replica: presence, not a heartbeat
//	config.<id>      agent → console  request: ConfigRequest, answered by ConfigReply
//	command.<id>     console → agent  request: Command, answered by CommandReply
//	metrics.<id>     agent → console  reserved for node metrics
//	kube.in.<id>.>   console → agent  reserved for the relay
//	kube.out.<id>.>  agent → console  reserved for the relay
//
// An agent's own requests are answered under its private inbox prefix; its answers to console go to
// reply.<id>.>, since allow_responses loses answers where subscriptions overlap.
package wire

import "strings"

// StreamInventory is the JetStream stream that keeps the last inventory of every agent.
const StreamInventory = "INVENTORY"

// InventorySubject is where agent id publishes its inventory.
func InventorySubject(id string) string { return "inventory." + id }

// HeaderSync is the header of a published inventory that names its epoch and sync number, so that the
// agent knows it again on StoredSubject.
const HeaderSync = "Proxima-Sync"

// StoredSubject is where the stream says to agent id that it stored an inventory. The stream sends no
// acknowledgements otherwise: they go to whatever subject the publisher names, with the server's rights.
func StoredSubject(id string) string { return InboxPrefix(id) + ".stored" }

// HeartbeatSubject is where agent id publishes heartbeats while it leads.
func HeartbeatSubject(id string) string { return "heartbeat." + id }

// StatusSubject is where agent id publishes its presence.
func StatusSubject(id string) string { return "status." + id }

// MetricsSubject is where agent id publishes node metrics.
func MetricsSubject(id string) string { return "metrics." + id }

// ConfigSubject is where agent id asks console for configuration, such as an epoch.
func ConfigSubject(id string) string { return "config." + id }

// CommandSubject is where console sends commands to agent id.
func CommandSubject(id string) string { return "command." + id }

// ReplySubject is the prefix under which agent id may answer console's requests.
func ReplySubject(id string) string { return "reply." + id + ".>" }

// InboxPrefix is the private inbox prefix of agent id, without the trailing wildcard.
func InboxPrefix(id string) string { return "_INBOX." + id }

// RelayInSubjects are the subjects on which console reaches the relay of agent id.
func RelayInSubjects(id string) string { return "kube.in." + id + ".>" }

// RelayOutSubjects are the subjects on which the relay of agent id reaches console.
func RelayOutSubjects(id string) string { return "kube.out." + id + ".>" }

// AgentOf returns the agent's id of a subject such as inventory.<id>; ok is false for any other shape.
func AgentOf(subject string) (id string, ok bool) {
	_, id, ok = strings.Cut(subject, ".")
	return id, ok && id != "" && !strings.Contains(id, ".")
}
