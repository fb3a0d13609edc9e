package wire

import "time"

// Inventory is everything that one sync of a cluster read, published as one message (B-94). It is
// ordered by (Epoch, Sync): console applies it only if that pair is greater than the stored one.
type Inventory struct {
	Capability int `json:"capability"`
	// Epoch was handed out by console; Sync counts the syncs within it, from 1.
	Epoch int64 `json:"epoch"`
	Sync  int64 `json:"sync"`

	ClusterName string `json:"clusterName"`
	ClusterSlug string `json:"clusterSlug"`
	// ClusterUID is the UID of the kube-system namespace: the cluster's fingerprint.
	ClusterUID  string    `json:"clusterUid"`
	CollectedAt time.Time `json:"collectedAt"`

	Cluster ClusterInfo `json:"cluster"`
	// Kinds says of every kind whether it was read, and what was cut. A kind that is not
	// listed was not asked for.
	Kinds []KindReport `json:"kinds"`

	Nodes      []Node      `json:"nodes,omitempty"`
	Namespaces []Namespace `json:"namespaces,omitempty"`
	Workloads  []Workload  `json:"workloads,omitempty"`
	Pods       []Pod       `json:"pods,omitempty"`
	Services   []Service   `json:"services,omitempty"`
	Events     []Event     `json:"events,omitempty"`
}

// Kind names one list of an inventory.
type Kind string

// The kinds of an inventory. Workloads are read as three kinds, since each may be refused alone.
const (
	KindNodes        Kind = "nodes"
	KindNamespaces   Kind = "namespaces"
	KindDeployments  Kind = "deployments"
	KindStatefulSets Kind = "statefulsets"
	KindDaemonSets   Kind = "daemonsets"
	KindPods         Kind = "pods"
	KindServices     Kind = "services"
	KindEvents       Kind = "events"
)

// UnreadReason says why a kind could not be read.
type UnreadReason string

// The reasons of an unread kind. The first two last, the third stands for a passing reason that went
// on for three syncs.
const (
	UnreadForbidden   UnreadReason = "forbidden"
	UnreadNotServed   UnreadReason = "not_served"
	UnreadUnavailable UnreadReason = "unavailable"
)

// KindReport says how the reading of one kind went.
type KindReport struct {
	Kind Kind `json:"kind"`
	// Unread is empty when the kind was read. The rows of an unread kind are absent from the message
	// and must not be taken for gone.
	Unread UnreadReason `json:"unread,omitempty"`
	// Message is the API server's own text, at most 1 KiB.
	Message string `json:"message,omitempty"`
	// Kept and Total differ where a limit cut the list; what was cut must not be taken for gone.
	Kept  int `json:"kept"`
	Total int `json:"total"`
}

// ClusterInfo describes the cluster as a whole (B-10).
type ClusterInfo struct {
	// Version is the API server's gitVersion, as it came.
	Version string `json:"version,omitempty"`
	// Platform is the API server's platform, such as linux/amd64.
	Platform string `json:"platform,omitempty"`
	// Provider is the cloud provider, derived from the nodes' providerID; empty when unknown.
	Provider string `json:"provider,omitempty"`
}

// Meta is what every object has.
type Meta struct {
	Namespace   string            `json:"namespace,omitempty"`
	Name        string            `json:"name"`
	UID         string            `json:"uid,omitempty"`
	CreatedAt   time.Time         `json:"createdAt,omitzero"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"` // scrubbed by the agent (B-110)
}

// Resources are amounts in integers: CPU in millicores, memory and storage in bytes, rounded up.
// A nil field was not stated.
type Resources struct {
	CPUMillis      *int64           `json:"cpuMillis,omitempty"`
	MemoryBytes    *int64           `json:"memoryBytes,omitempty"`
	EphemeralBytes *int64           `json:"ephemeralBytes,omitempty"`
	Pods           *int64           `json:"pods,omitempty"`
	Extended       map[string]int64 `json:"extended,omitempty"` // such as nvidia.com/gpu
}

// Condition is one condition of an object; Status is True, False or Unknown.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// NodeReady is a node's readiness: the Ready condition has three values, and may be absent.
type NodeReady string

// The values of NodeReady.
const (
	NodeReadyTrue    NodeReady = "ready"
	NodeReadyFalse   NodeReady = "not_ready"
	NodeReadyUnknown NodeReady = "unknown" // the condition is Unknown, or there is none
)

// Node is one node (B-11).
type Node struct {
	Meta
	Ready          NodeReady   `json:"ready"`
	ReadyReason    string      `json:"readyReason,omitempty"`
	Unschedulable  bool        `json:"unschedulable,omitempty"`
	Roles          []string    `json:"roles,omitempty"`
	InternalIP     string      `json:"internalIp,omitempty"`
	ExternalIP     string      `json:"externalIp,omitempty"`
	Hostname       string      `json:"hostname,omitempty"`
	KubeletVersion string      `json:"kubeletVersion,omitempty"`
	OSImage        string      `json:"osImage,omitempty"`
	Architecture   string      `json:"architecture,omitempty"`
	Runtime        string      `json:"runtime,omitempty"`
	ProviderID     string      `json:"providerId,omitempty"`
	Capacity       Resources   `json:"capacity"`
	Allocatable    Resources   `json:"allocatable"`
	Conditions     []Condition `json:"conditions,omitempty"`
	Taints         []Taint     `json:"taints,omitempty"`
}

// Taint is one taint of a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Namespace is one namespace with the number of what the same sync read in it (B-12).
type Namespace struct {
	Meta
	Phase     string `json:"phase,omitempty"`
	Pods      int    `json:"pods"`
	Workloads int    `json:"workloads"`
	Services  int    `json:"services"`
}

// Workload is a Deployment, StatefulSet or DaemonSet (B-13).
type Workload struct {
	Meta
	Kind       string      `json:"kind"`
	Desired    int64       `json:"desired"`
	Ready      int64       `json:"ready"`
	Available  int64       `json:"available"`
	Updated    int64       `json:"updated"`
	Strategy   string      `json:"strategy,omitempty"`
	Paused     bool        `json:"paused,omitempty"`
	Containers []Container `json:"containers,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// ContainerRole tells the containers of a pod apart.
type ContainerRole string

// The roles of a container. A sidecar is an init container with restartPolicy Always.
const (
	ContainerApp       ContainerRole = "app"
	ContainerInit      ContainerRole = "init"
	ContainerSidecar   ContainerRole = "sidecar"
	ContainerEphemeral ContainerRole = "ephemeral"
)

// Container is one container of a pod or of a workload's template; the observed fields are empty in a
// template.
type Container struct {
	Name     string        `json:"name"`
	Image    string        `json:"image,omitempty"`
	Role     ContainerRole `json:"role"`
	Requests Resources     `json:"requests"`
	Limits   Resources     `json:"limits"`

	Ready    bool   `json:"ready,omitempty"`
	Restarts int64  `json:"restarts,omitempty"`
	State    string `json:"state,omitempty"`  // running, waiting, terminated
	Reason   string `json:"reason,omitempty"` // such as CrashLoopBackOff
}

// Pod is one pod (B-16).
type Pod struct {
	Meta
	Phase     string `json:"phase,omitempty"`
	Reason    string `json:"reason,omitempty"`
	NodeName  string `json:"nodeName,omitempty"`
	IP        string `json:"ip,omitempty"`
	QOSClass  string `json:"qosClass,omitempty"`
	OwnerKind string `json:"ownerKind,omitempty"`
	OwnerName string `json:"ownerName,omitempty"`
	// WorkloadKind and WorkloadName name the Deployment, StatefulSet, DaemonSet or Job above the
	// owner; empty for a pod of none, such as a mirror pod, whose owner is its node.
	WorkloadKind string `json:"workloadKind,omitempty"`
	WorkloadName string `json:"workloadName,omitempty"`
	// Static marks a mirror pod, which the kubelet owns.
	Static bool `json:"static,omitempty"`
	// ReadyContainers of LongRunning: app containers and sidecars.
	ReadyContainers int `json:"readyContainers"`
	LongRunning     int `json:"longRunning"`
	// Restarts sums the restarts of app containers and sidecars.
	Restarts int64 `json:"restarts"`
	// Scheduled is what the scheduler counts: the larger of app containers with sidecars, and each
	// init container with the sidecars before it. Running is what runs for long.
	Scheduled  Resources   `json:"scheduled"`
	Running    Resources   `json:"running"`
	StartedAt  time.Time   `json:"startedAt,omitzero"`
	Containers []Container `json:"containers,omitempty"`
}

// Service is one service (B-17).
type Service struct {
	Meta
	Type         string            `json:"type"`
	ClusterIPs   []string          `json:"clusterIps,omitempty"`
	ExternalName string            `json:"externalName,omitempty"`
	Ports        []ServicePort     `json:"ports,omitempty"`
	Selector     map[string]string `json:"selector,omitempty"`
	LoadBalancer []string          `json:"loadBalancer,omitempty"`
}

// ServicePort is one port of a service.
type ServicePort struct {
	Name       string `json:"name,omitempty"`
	Protocol   string `json:"protocol,omitempty"`
	Port       int32  `json:"port"`
	TargetPort string `json:"targetPort,omitempty"`
	NodePort   int32  `json:"nodePort,omitempty"`
}

// Event is one event (B-20).
type Event struct {
	Meta
	Type         string    `json:"type,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	Message      string    `json:"message,omitempty"`
	InvolvedKind string    `json:"involvedKind,omitempty"`
	InvolvedName string    `json:"involvedName,omitempty"`
	Source       string    `json:"source,omitempty"`
	Count        int64     `json:"count"`
	FirstSeen    time.Time `json:"firstSeen,omitzero"`
	// LastSeen is series.lastObservedTime, else lastTimestamp, else eventTime, else firstTimestamp,
	// else creationTimestamp.
	LastSeen time.Time `json:"lastSeen,omitzero"`
}
