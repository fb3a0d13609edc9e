package audit

import (
	"maps"
	"time"

	"prxm.uz/proxima/internal/console/id"
)

// The kinds of actors.
const (
	ActorUser   = "user"
	ActorAgent  = "agent"
	ActorSystem = "system"
)

// System begins the event of an act of console itself, such as the first run.
func System(at time.Time, action Action) Event {
	return Event{ID: id.New("aud"), At: at, ActorKind: ActorSystem, ActorName: "console", Action: action}
}

// Agent begins the event of an act of an agent.
func Agent(at time.Time, action Action, agentID, agentName string) Event {
	return Event{ID: id.New("aud"), At: at, ActorKind: ActorAgent, ActorID: agentID, ActorName: agentName, Action: action}
}

// On says what was acted on.
func (e Event) On(resourceType, resourceID, resourceName string) Event {
	e.ResourceType, e.ResourceID, e.ResourceName = resourceType, resourceID, resourceName
	return e
}

// In says where the resource lives; both ids may be empty.
func (e Event) In(clientID, environmentID string) Event {
	e.ClientID, e.EnvironmentID = clientID, environmentID
	return e
}

// With adds one detail. The value must not be a secret.
func (e Event) With(name, value string) Event {
	detail := maps.Clone(e.Detail)
	if detail == nil {
		detail = map[string]string{}
	}
	detail[name] = value
	e.Detail = detail
	return e
}
