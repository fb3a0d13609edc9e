package audit

import (
	"slices"
	"strings"
)

// Action names what was done. The names are stable: they are stored, filtered by, and exported.
type Action string

// The actions. Each has a line in lines; the store takes no other.
const (
	AdministratorCreated    Action = "administrator_created"
	AgentCredentialsRotated Action = "agent_credentials_rotated"
	AgentDeleted            Action = "agent_deleted"
	AgentEnrolled           Action = "agent_enrolled"
	AgentIdentityReleased   Action = "agent_identity_released"
	AgentRevoked            Action = "agent_revoked"
	AgentSuspended          Action = "agent_suspended"
	APITokenMinted          Action = "api_token_minted"
	APITokenRevoked         Action = "api_token_revoked"
	AuditExported           Action = "audit_exported"
	AuditPruned             Action = "audit_pruned"
	ClientCreated           Action = "client_created"
	ClientDeleted           Action = "client_deleted"
	ClientRenamed           Action = "client_renamed"
	ClusterIdentityAccepted Action = "cluster_identity_accepted"
	ClusterRemoved          Action = "cluster_removed"
	EnvironmentCreated      Action = "environment_created"
	EnvironmentDeleted      Action = "environment_deleted"
	EnvironmentRenamed      Action = "environment_renamed"
	InstallTokenMinted      Action = "install_token_minted"
	InstallTokenRevoked     Action = "install_token_revoked"
	OnboardingAbandoned     Action = "onboarding_abandoned"
	OnboardingRecorded      Action = "onboarding_recorded"
	OnboardingResumed       Action = "onboarding_resumed"
	OtherSessionsEnded      Action = "other_sessions_ended"
	PasswordChanged         Action = "password_changed"
	RoleAssigned            Action = "role_assigned"
	RoleCreated             Action = "role_created"
	RoleDeleted             Action = "role_deleted"
	RoleUnassigned          Action = "role_unassigned"
	RoleUpdated             Action = "role_updated"
	SessionEnded            Action = "session_ended"
	SignInFailed            Action = "sign_in_failed"
	SignedIn                Action = "signed_in"
	SignedOut               Action = "signed_out"
	UserCreated             Action = "user_created"
	UserUpdated             Action = "user_updated"
)

// line says what an action is called in a list, and the sentence of one event of it.
type line struct {
	action Action
	label  string
	// sentence has {who} and {what} for actor and resource, and {name} for a detail. What stands in [ ] goes
	// where one of its details is missing.
	sentence string
}

func lines() []line {
	return []line{
		{AdministratorCreated, "First administrator made", "{who} made the first administrator, {what}"},
		{AgentCredentialsRotated, "Agent’s credential rotated", "{who} had agent {what} fetch a new credential"},
		{AgentDeleted, "Agent deleted", "{who} deleted the record of agent {what}"},
		{AgentEnrolled, "Agent enrolled", "Agent {what} enrolled[ with the install token {token}…]"},
		{AgentIdentityReleased, "Agent’s identity released", "{who} released the identity of agent {what}"},
		{AgentRevoked, "Agent revoked", "{who} revoked agent {what}"},
		{AgentSuspended, "Agent kept out", "{who} kept agent {what} out for a while[: {why}]"},
		{APITokenMinted, "API token minted", "{who} minted the API token {what}"},
		{APITokenRevoked, "API token revoked", "{who} revoked the API token {what}[ of {user}]"},
		{AuditExported, "Audit log exported", "{who} exported rows of the audit log"},
		{AuditPruned, "Audit log shortened", "{who} removed {removed} rows of the audit log that had been kept for their time[, of before {until}]"},
		{ClientCreated, "Client added", "{who} added the client {what}"},
		{ClientDeleted, "Client deleted", "{who} deleted the client {what}"},
		{ClientRenamed, "Client renamed", "{who} renamed the client {before} to {after}"},
		{ClusterIdentityAccepted, "Cluster’s identity accepted", "{who} accepted a new identity of cluster {what}"},
		{ClusterRemoved, "Cluster removed", "{who} removed cluster {what}"},
		{EnvironmentCreated, "Environment added", "{who} added the environment {what}"},
		{EnvironmentDeleted, "Environment deleted", "{who} deleted the environment {what}"},
		{EnvironmentRenamed, "Environment renamed", "{who} renamed the environment {before} to {after}"},
		{InstallTokenMinted, "Install token minted", "{who} minted the install token {what}…"},
		{InstallTokenRevoked, "Install token revoked", "{who} revoked the install token {what}…"},
		{OnboardingAbandoned, "Attempt abandoned", "{who} abandoned the attempt to connect {what}"},
		{OnboardingRecorded, "Attempt recorded", "{who} recorded the cluster {what}, to connect it"},
		{OnboardingResumed, "Attempt resumed", "{who} took up the abandoned attempt to connect {what}"},
		{OtherSessionsEnded, "Other sessions ended", "{who} signed out everywhere else"},
		{PasswordChanged, "Password changed", "{who} changed their password"},
		{RoleAssigned, "Role given", "{who} gave the role {role} to {what}"},
		{RoleCreated, "Role added", "{who} added the role {what}"},
		{RoleDeleted, "Role deleted", "{who} deleted the role {what}"},
		{RoleUnassigned, "Role taken", "{who} took the role {role} from {what}"},
		{RoleUpdated, "Role changed", "{who} changed the role {what}"},
		{SessionEnded, "Session ended", "{who} ended one of their sessions"},
		{SignInFailed, "Sign-in failed", "{who} refused a sign-in[ to {account}]; more within {window} minutes leave no row of their own"},
		{SignedIn, "Signed in", "{who} signed in"},
		{SignedOut, "Signed out", "{who} signed out"},
		{UserCreated, "Person added", "{who} added {what}"},
		{UserUpdated, "Person changed", "{who} changed {what}"},
	}
}

func (a Action) line() (line, bool) {
	all := lines()
	i := slices.IndexFunc(all, func(l line) bool { return l.action == a })
	if i < 0 {
		return line{}, false
	}
	return all[i], true
}

// Actions lists all of them, by name.
func Actions() []Action {
	var out []Action
	for _, l := range lines() {
		out = append(out, l.action)
	}
	slices.Sort(out)
	return out
}

// Known tells whether a is an action of this build.
func (a Action) Known() bool {
	_, ok := a.line()
	return ok
}

// Label is what the action is called in a list of actions; its name where this build does not know it.
func (a Action) Label() string {
	if l, ok := a.line(); ok {
		return l.label
	}
	return string(a)
}

// Who names the actor: a person's e-mail address, an agent, or Console.
func (e Event) Who() string {
	switch {
	case e.ActorKind == ActorSystem:
		return "Console"
	case e.ActorKind == ActorAgent:
		return "Agent " + e.ActorName
	case e.ActorName == "":
		return e.ActorID
	}
	return e.ActorName
}

// What names the resource.
func (e Event) What() string {
	if e.ResourceName != "" {
		return e.ResourceName
	}
	return e.ResourceID
}

// Sentence says in words what happened.
func (e Event) Sentence() string {
	l, ok := e.Action.line()
	if !ok { // a newer build wrote it
		return strings.TrimSpace(e.Who() + " did " + string(e.Action) + " " + e.What())
	}
	var out strings.Builder
	rest := l.sentence
	for rest != "" {
		before, after, optional := strings.Cut(rest, "[")
		text, _ := e.fill(before)
		out.WriteString(text)
		if !optional {
			break
		}
		part, behind, _ := strings.Cut(after, "]")
		if text, whole := e.fill(part); whole {
			out.WriteString(text)
		}
		rest = behind
	}
	return out.String()
}

// fill puts the event's values in; whole is false where one is missing.
func (e Event) fill(text string) (filled string, whole bool) {
	var out strings.Builder
	whole = true
	for {
		before, after, more := strings.Cut(text, "{")
		out.WriteString(before)
		if !more {
			return out.String(), whole
		}
		name, behind, _ := strings.Cut(after, "}")
		value := e.value(name)
		whole = whole && value != ""
		out.WriteString(value)
		text = behind
	}
}

func (e Event) value(name string) string {
	switch name {
	case "who":
		return e.Who()
	case "what":
		return e.What()
	}
	return e.Detail[name]
}
