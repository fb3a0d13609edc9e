package wire

import "time"

// CapabilityVersion is what this build speaks; it grows by one with each change that the other side
// may need to know of.
//
//	1: enrolment, inventory, heartbeat, status, epochs.
const CapabilityVersion = 1

// Role tells a reporting collector from a waiting one.
type Role string

// The roles of a collector's replica (B-70).
const (
	RoleLeader  Role = "leader"
	RoleStandby Role = "standby"
)

// Heartbeat says that the leading collector lives; only the leader sends it (B-9, A-56). Freshness is
// judged by the time at which console received it, never by SentAt.
type Heartbeat struct {
	Capability  int       `json:"capability"`
	SentAt      time.Time `json:"sentAt"`
	ClusterSlug string    `json:"clusterSlug"`
	Epoch       int64     `json:"epoch"`
	LastSync    *SyncInfo `json:"lastSync,omitempty"`
}

// SyncInfo tells how the last sync went, as the agent saw it.
type SyncInfo struct {
	Number     int64     `json:"number"`
	FinishedAt time.Time `json:"finishedAt"`
	DurationMS int64     `json:"durationMs"`
	// Error is empty after a sync that was published; at most 1 KiB.
	Error string `json:"error,omitempty"`
}

// Status is a replica's presence, sent every 30 s by leader and standby alike. It is not a
// heartbeat.
type Status struct {
	Capability  int       `json:"capability"`
	SentAt      time.Time `json:"sentAt"`
	Version     string    `json:"version"`
	Role        Role      `json:"role"`
	ClusterSlug string    `json:"clusterSlug"`
	// Template is the number of the permission template of the credential in use.
	Template int `json:"template"`
	// SyncInterval is the agent's own interval, in seconds; console shows it, and judges by its own
	//
	SyncIntervalSeconds int64     `json:"syncIntervalSeconds,omitempty"`
	LastSync            *SyncInfo `json:"lastSync,omitempty"`
}

// ConfigRequest is what an agent asks of console.
type ConfigRequest struct {
	// Want is one of the Want constants.
	Want string `json:"want"`
	// ClusterSlug is the slug the agent is configured for.
	ClusterSlug string `json:"clusterSlug"`
}

// WantEpoch asks for a new epoch: at start and on taking the lead.
const WantEpoch = "epoch"

// ConfigReply answers a ConfigRequest.
type ConfigReply struct {
	// Epoch is greater than every epoch that console handed out before for this cluster.
	Epoch int64 `json:"epoch,omitempty"`
	// Code and Message say why the request was refused; both empty on success.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Command is a request of console to one agent.
type Command struct {
	// Name is one of the Command constants.
	Name string `json:"name"`
}

// CommandRenewCredentials makes the agent fetch a fresh credential at once.
const CommandRenewCredentials = "renew_credentials"

// CommandReply answers a Command.
type CommandReply struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}
