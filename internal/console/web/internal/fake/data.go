package fake

import (
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/enrollment"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/onboarding"
	"prxm.uz/proxima/internal/console/onboarding/gate"
	"prxm.uz/proxima/internal/console/tenancy"
	"prxm.uz/proxima/internal/wire"
)

// Users of a world: an administrator, somebody who reads the clusters of one client, and somebody
// without any role.
const (
	Admin  = "us_admin"
	Reader = "us_reader"
	Nobody = "us_nobody"
)

// Hostile is a name that must not become markup anywhere.
const Hostile = `<img src=x onerror=alert(1)>"'&`

// Empty is a console right after its first start.
func Empty(now func() time.Time) *World {
	w := &World{
		Now: now, Attempts: map[string]onboarding.Status{}, Objects: map[string][]inventory.Object{},
		Users: map[string]access.Principal{
			Admin: {UserID: Admin, Email: "mira.okafor@ostmark.example", Name: "Mira Okafor", Grants: []access.Grant{{Role: "administrator", Permissions: access.Permissions()}}},
			Reader: {UserID: Reader, Email: "jonas.lind@ostmark.example", Name: "Jonas Lind", Grants: []access.Grant{
				{Role: "viewer", Permissions: []access.Permission{access.HostsRead}, Scope: access.Scope{ClientID: "cl_halden"}},
			}},
			Nobody: {UserID: Nobody, Email: "new@ostmark.example"},
		},
	}
	w.team(func(d time.Duration) time.Time { return now().Add(-d) }, 0)
	return w
}

// Full is a console with clients, clusters in every condition and attempts in every state.
func Full(now func() time.Time) *World {
	w := Empty(now)
	t := now()
	before := func(d time.Duration) time.Time { return t.Add(-d) }
	w.Clients = []tenancy.Client{{ID: "cl_halden", Name: "Halden Energy"}, {ID: "cl_kivu", Name: "Kivu Telecom"}, {ID: "cl_ostra", Name: "Ostra Retail"}}
	for i, c := range w.Clients {
		w.Clients[i].CreatedAt = before(time.Duration(90-i) * 24 * time.Hour)
		for _, e := range []string{"prod", "staging"} {
			w.Environments = append(w.Environments, tenancy.Environment{ID: "en_" + c.ID[3:] + "_" + e, ClientID: c.ID, Name: e, CreatedAt: before(80 * 24 * time.Hour)})
		}
	}
	w.team(before, 130)
	w.Clusters = clusters(before)
	for _, c := range w.Clusters {
		w.Objects[c.ID] = nil
	}
	w.Objects["ck_ostra_web"] = objects(before)
	w.attempts(before)
	w.Audited = audited(before)
	for i := range 7 {
		heard := 12 * time.Second
		if i == 4 {
			heard = 3 * time.Hour
		}
		w.Agents = append(w.Agents, fleet.Agent{
			ID: fmt.Sprintf("ag_%d", i), ClientID: "cl_ostra", EnvironmentID: "en_ostra_prod", Type: fleet.TypeNodeMonitor, ClusterSlug: "ostra-web",
			Name: fmt.Sprintf("ostra-w-%02d", i+1), Version: "0.9.2", EnrolledAt: before(40 * 24 * time.Hour), HeartbeatAt: before(heard), PresenceAt: before(heard),
			PublicKey: fmt.Sprintf("UN%d", i), Template: min(i, 1), CredentialIssuedAt: before(23 * time.Hour), CredentialExpiresAt: before(-145 * time.Hour),
		})
	}
	w.Agents = append(w.Agents, fleet.Agent{ID: "ag_h", ClientID: "cl_kivu", EnvironmentID: "en_kivu_prod", Type: fleet.TypeHost, Name: "bastion-1.kivu.example", Version: "0.9.1", EnrolledAt: before(3 * time.Hour)},
		fleet.Agent{
			ID: "ag_c", ClientID: "cl_ostra", EnvironmentID: "en_ostra_prod", Type: fleet.TypeCollector, ClusterSlug: "ostra-web", Name: "ostra-web", Version: "0.9.2",
			PublicKey: "UAAA", Role: wire.RoleLeader, EnrolledAt: before(40 * 24 * time.Hour), HeartbeatAt: before(12 * time.Second), PresenceAt: before(12 * time.Second),
			Template: 1, CredentialIssuedAt: before(46 * time.Hour), CredentialExpiresAt: before(-122 * time.Hour), SyncIntervalSeconds: 300,
			ReportedSync: &wire.SyncInfo{Number: 812, FinishedAt: before(55 * time.Second), DurationMS: 1900},
		},
		fleet.Agent{
			ID: "ag_k", ClientID: "cl_kivu", EnvironmentID: "en_kivu_prod", Type: fleet.TypeCollector, ClusterSlug: "kivu-dr", Name: "proxima-agent-cluster-agent-0", Version: "0.9.1",
			PublicKey: "UBBB", Role: wire.RoleLeader, EnrolledAt: before(90 * 24 * time.Hour), HeartbeatAt: before(20 * time.Second), PresenceAt: before(20 * time.Second),
			Template: 1, CredentialIssuedAt: before(3 * 24 * time.Hour), CredentialExpiresAt: before(-96 * time.Hour), ClusterRemovedAt: before(3 * time.Minute),
			ReportedSync: &wire.SyncInfo{Number: 90, FinishedAt: before(2 * time.Minute), DurationMS: 800, Error: `pods is forbidden: User "system:serviceaccount:proxima-system:proxima-cluster-agent" cannot list resource "pods"`},
		})
	tokens(w, before)
	return w
}

func clusters(before func(time.Duration) time.Time) []inventory.Cluster {
	read := func(kind wire.Kind, kept, total int, at time.Duration) inventory.KindState {
		return inventory.KindState{KindReport: wire.KindReport{Kind: kind, Kept: kept, Total: total}, ReadAt: before(at)}
	}
	kinds := func(at time.Duration) []inventory.KindState {
		return []inventory.KindState{
			read(wire.KindNodes, 31, 31, at), read(wire.KindNamespaces, 44, 44, at), read(wire.KindDeployments, 220, 220, at),
			read(wire.KindStatefulSets, 41, 41, at), read(wire.KindDaemonSets, 25, 25, at), read(wire.KindPods, 1146, 1146, at),
			read(wire.KindServices, 203, 203, at), read(wire.KindEvents, 1000, 1000, at),
		}
	}
	one := func(id, client, clientName, environment, name, slug string, heartbeat, sync time.Duration) inventory.Cluster {
		return inventory.Cluster{
			ID: id, ClientID: "cl_" + client, ClientName: clientName, EnvironmentID: "en_" + client + "_" + environment, EnvironmentName: environment,
			Slug: slug, Name: name, UID: "2f0a9c1d-44be-4c0e-9a3e-0b7d8f6612aa", AgentName: slug, Epoch: 3, Sync: 812,
			FirstSyncAt: before(92 * 24 * time.Hour), LastSyncAt: before(sync), Version: "v1.35.4", Platform: "linux/amd64", Provider: "openstack",
			Kinds: kinds(sync), Counts: inventory.Counts{Nodes: 31, Namespaces: 44, Workloads: 286, Pods: 1146, Services: 203, Events: 1000},
			Collectors: 3, EnrolledAt: before(92 * 24 * time.Hour), HeartbeatAt: before(heartbeat),
		}
	}
	healthy := one("ck_ostra_web", "ostra", "Ostra Retail", "prod", "Ostra Web", "ostra-web", 7*time.Second, 55*time.Second)
	healthy.Kinds[6].Unread, healthy.Kinds[6].Message = wire.UnreadForbidden, `services is forbidden: User "system:serviceaccount:proxima-system:proxima-cluster-agent" cannot list resource "services" in API group "" at the cluster scope`
	healthy.Kinds[6].ReadAt = before(26 * time.Hour)
	healthy.Kinds[7].Kept, healthy.Kinds[7].Total = 1000, 4312
	healthy.Dropped, healthy.DroppedAt, healthy.DroppedReason = 2, before(20*time.Minute), inventory.DropOlder
	silent := one("ck_kivu_core", "kivu", "Kivu Telecom", "prod", "Kivu Core", "kivu-core", 38*time.Minute, 41*time.Minute)
	fresh := one("ck_halden", "halden", "Halden Energy", "staging", "Halden Staging", "halden-staging", 9*time.Second, time.Minute)
	fresh.Collectors = 1
	rebuilt := one("ck_kivu_goma", "kivu", "Kivu Telecom", "prod", "Kivu Edge Goma", "kivu-edge-goma", 21*time.Second, 4*time.Minute)
	rebuilt.Conflict = inventory.Conflict{UID: "9b4c7e52-0d1f-4a55-8a7c-6c1f0e5d2b11", AgentName: "kivu-edge-goma", FirstSeenAt: before(2 * time.Hour), SeenAt: before(4 * time.Minute)}
	young := inventory.Cluster{
		ID: "ck_young", ClientID: "cl_halden", ClientName: "Halden Energy", EnvironmentID: "en_halden_prod", EnvironmentName: "prod",
		Slug: "halden-prod-eu", Name: "Halden Prod EU", Collectors: 1, EnrolledAt: before(2 * time.Minute), HeartbeatAt: before(4 * time.Second),
	}
	storing := young
	storing.ID, storing.Slug, storing.Name, storing.UID, storing.AgentName, storing.PartlyApplied = "ck_storing", "halden-prod-us", "Halden Prod US", "7d3a5b90-52c4-4a0c-8f51-2f4a7b6c9e02", "halden-prod-us", true
	hostile := one("ck_hostile", "ostra", "Ostra Retail", "prod", Hostile, "img-src-x", 3*time.Second, 2*time.Minute)
	return []inventory.Cluster{healthy, silent, fresh, rebuilt, young, storing, hostile}
}

func amount(n int64) *int64 { return &n }

func objects(before func(time.Duration) time.Time) []inventory.Object {
	var out []inventory.Object
	const gi = int64(1) << 30
	for i := range 31 {
		n := wire.Node{
			Meta:  wire.Meta{Name: fmt.Sprintf("ostra-w-%02d", i+1), UID: fmt.Sprintf("n-%d", i), CreatedAt: before(90 * 24 * time.Hour), Labels: map[string]string{"topology.kubernetes.io/zone": "eu-1a", "kubernetes.io/os": "linux"}},
			Ready: wire.NodeReadyTrue, Roles: []string{"worker"}, InternalIP: fmt.Sprintf("10.8.0.%d", i+10), KubeletVersion: "v1.35.4", OSImage: "Flatcar 4081.2", Architecture: "amd64",
			Runtime: "containerd://2.1.4", Capacity: wire.Resources{CPUMillis: amount(16000), MemoryBytes: amount(64 * gi), Pods: amount(110)}, Allocatable: wire.Resources{CPUMillis: amount(15890), MemoryBytes: amount(62 * gi), Pods: amount(110)},
			Conditions: []wire.Condition{{Type: "Ready", Status: "True", Reason: "KubeletReady", Since: before(20 * 24 * time.Hour)}, {Type: "MemoryPressure", Status: "False", Reason: "KubeletHasSufficientMemory", Since: before(20 * 24 * time.Hour)}},
		}
		o := inventory.Object{Key: inventory.Key{Section: inventory.SectionNodes, Kind: "Node", Name: n.Name}, State: "Ready", CPUMillis: 15890, MemoryBytes: 62 * gi, At: n.CreatedAt}
		switch i {
		case 3:
			n.Ready, n.ReadyReason, o.State = wire.NodeReadyFalse, "KubeletNotReady", "Not ready"
		case 5:
			n.Unschedulable, o.State = true, "Ready, cordoned"
			n.Taints = []wire.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}}
		case 8:
			n.Ready, o.State = wire.NodeReadyUnknown, "Unknown"
		}
		o.Body = encode(n)
		out = append(out, o)
	}
	for i, name := range []string{"shop", "edge", "batch", "kube-system", "pricing"} {
		n := wire.Namespace{Meta: wire.Meta{Name: name, CreatedAt: before(90 * 24 * time.Hour)}, Phase: "Active", Pods: 40 * (i + 1), Workloads: 6, Services: 4}
		out = append(out, inventory.Object{Key: inventory.Key{Section: inventory.SectionNamespaces, Kind: "Namespace", Name: name}, State: "Active", Count: int64(n.Pods), At: n.CreatedAt, Body: encode(n)})
	}
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet"}
	for i, name := range []string{"checkout-api", "session-cache", "price-feed", "search-indexer", "catalog"} {
		w := wire.Workload{
			Meta: wire.Meta{Namespace: "shop", Name: name, CreatedAt: before(60 * 24 * time.Hour), Labels: map[string]string{"app": name}}, Kind: kinds[i%3], Desired: 3, Ready: 3, Available: 3, Updated: 3,
			Containers: []wire.Container{{Name: "app", Role: wire.ContainerApp, Image: "registry.ostra.example/" + name + ":4.18.3", Requests: wire.Resources{CPUMillis: amount(250), MemoryBytes: amount(512 << 20)}}},
		}
		state := "Ready"
		if i == 3 {
			w.Ready, w.Available, state = 1, 1, "Not ready"
		}
		out = append(out, inventory.Object{Key: inventory.Key{Section: inventory.SectionWorkloads, Kind: w.Kind, Namespace: "shop", Name: name}, State: state, Ready: w.Ready, Desired: 3, At: w.CreatedAt, Body: encode(w)})
	}
	states := []string{"CrashLoopBackOff", "ImagePullBackOff", "Pending", "Running", "Succeeded", "Unknown", "Running"}
	for i := range 260 {
		p := wire.Pod{
			Meta:  wire.Meta{Namespace: "shop", Name: fmt.Sprintf("checkout-api-7d9f8c6b5d-%05d", i), CreatedAt: before(time.Duration(i+1) * 11 * time.Minute), UID: fmt.Sprintf("p-%d", i)},
			Phase: "Running", NodeName: fmt.Sprintf("ostra-w-%02d", i%31+1), IP: "10.244.3.7", QOSClass: "Burstable", WorkloadKind: "Deployment", WorkloadName: "checkout-api", OwnerKind: "ReplicaSet", OwnerName: "checkout-api-7d9f8c6b5d",
			ReadyContainers: 2, LongRunning: 2, Running: wire.Resources{CPUMillis: amount(250), MemoryBytes: amount(512 << 20)},
			Containers: []wire.Container{
				{Name: "app", Role: wire.ContainerApp, Image: "registry.ostra.example/checkout-api:4.18.3", State: "running", Ready: true, Requests: wire.Resources{CPUMillis: amount(200), MemoryBytes: amount(384 << 20)}, Limits: wire.Resources{MemoryBytes: amount(768 << 20)}},
				{Name: "mesh", Role: wire.ContainerSidecar, Image: "registry.ostra.example/mesh:1.9", State: "waiting", Reason: "CrashLoopBackOff", Restarts: 3},
			},
		}
		o := inventory.Object{
			Key: inventory.Key{Section: inventory.SectionPods, Kind: "Pod", Namespace: "shop", Name: p.Name}, State: states[min(i, len(states)-1)], Node: p.NodeName, Owner: "Deployment/checkout-api",
			Ready: 2, Desired: 2, CPUMillis: 250, MemoryBytes: 512 << 20, At: p.CreatedAt,
		}
		if i < 4 {
			o.Ready = 1
			o.Restarts = int64(41 - 10*i)
		}
		if i == 6 {
			o.UnseenSince = before(20 * time.Minute)
		}
		o.Body = encode(p)
		out = append(out, o)
	}
	for i, name := range []string{"checkout-api", "gateway", "session-cache"} {
		s := wire.Service{Meta: wire.Meta{Namespace: "shop", Name: name, CreatedAt: before(60 * 24 * time.Hour)}, Type: []string{"ClusterIP", "LoadBalancer", "ClusterIP"}[i], ClusterIPs: []string{fmt.Sprintf("10.96.4.%d", i)}, Ports: []wire.ServicePort{{Port: 80, Protocol: "TCP"}, {Port: 443, NodePort: 30443, Protocol: "TCP"}}, Selector: map[string]string{"app": name}}
		if i == 1 {
			s.LoadBalancer = []string{"203.0.113.7"}
		}
		out = append(out, inventory.Object{Key: inventory.Key{Section: inventory.SectionServices, Kind: "Service", Namespace: "shop", Name: name}, State: s.Type, At: s.CreatedAt, Body: encode(s)})
	}
	for i, reason := range []string{"BackOff", "FailedScheduling", "Unhealthy", "Pulled"} {
		kind := "Warning"
		if reason == "Pulled" {
			kind = "Normal"
		}
		e := wire.Event{Meta: wire.Meta{Namespace: "shop", Name: fmt.Sprintf("checkout.%d", i)}, Type: kind, Reason: reason, Message: "Back-off restarting failed container mesh in pod checkout-api-7d9f8c6b5d-00000", InvolvedKind: "Pod", InvolvedName: "checkout-api-7d9f8c6b5d-00000", Count: int64(41 - i*9), LastSeen: before(time.Duration(i*4+2) * time.Minute), FirstSeen: before(3 * time.Hour), Source: "kubelet"}
		out = append(out, inventory.Object{Key: inventory.Key{Section: inventory.SectionEvents, Kind: "Event", Namespace: "shop", Name: e.Name}, State: kind, Owner: "Pod/" + e.InvolvedName, Count: e.Count, At: e.LastSeen, Body: encode(e)})
	}
	return out
}

func (w *World) attempts(before func(time.Duration) time.Time) {
	add := func(id, name, slug string, track gate.Track, clusterID string, last *onboarding.Summary, checked time.Duration) {
		a := onboarding.Attempt{
			ID: id, ClientID: "cl_halden", ClientName: "Halden Energy", EnvironmentID: "en_halden_prod", EnvironmentName: "prod", Slug: slug, DisplayName: name,
			CreatedAt: before(52 * time.Minute), CreatedBy: Admin, CreatedByName: "Mira Okafor", LastStatus: last,
		}
		if last != nil {
			a.LastCheckedAt = before(checked)
		}
		if track.Done {
			a.InventoryDoneAt = before(time.Minute)
		}
		token := enrollment.Token{ID: "it_" + id, Prefix: "pit_8Wq2", MaxUses: 25, Uses: 1, CreatedAt: before(52 * time.Minute), ExpiresAt: before(-23 * time.Hour), First: true, CollectorsEnrolled: 1}
		w.Attempts[id] = onboarding.Status{Attempt: a, CheckedAt: before(time.Second), Inventory: track, ClusterID: clusterID, Tokens: []enrollment.Token{token}}
	}
	now := before(0)
	add("ob_waiting", "Halden Prod EU", "halden-prod-eu", Waiting(now), "", &onboarding.Summary{Passed: 1, Waiting: 3, Gate: "Agent enrolled as a collector", State: "waiting"}, 6*time.Second)
	add("ob_failed", "Halden DR", "halden-dr", Failed(now), "ck_halden", &onboarding.Summary{Passed: 2, Failed: 2, Gate: "Heartbeat fresh", State: "failed"}, 47*time.Minute)
	add("ob_new", Hostile, "img-src-x", Mixed(now), "ck_hostile", nil, 0)
	add("ob_done", "Halden Staging", "halden-staging", Passed(now), "ck_halden", &onboarding.Summary{Passed: 4}, time.Minute)
	abandoned := w.Attempts["ob_waiting"]
	abandoned.Attempt.ID, abandoned.Attempt.AbandonedAt, abandoned.Attempt.Slug = "ob_abandoned", before(3*time.Hour), "halden-old"
	w.Attempts["ob_abandoned"] = abandoned
	archived := w.Attempts["ob_new"]
	archived.Attempt.ID, archived.Attempt.ArchivedAt, archived.Attempt.Slug = "ob_archived", before(5*time.Minute), "halden-gone"
	w.Attempts["ob_archived"] = archived
}

// Titles are the gates of the inventory track.
func titles() [4]string {
	return [4]string{"Install token issued", "Agent enrolled as a collector", "Heartbeat fresh", "First inventory sync landed"}
}

func track(owner string, gates ...gate.Gate) gate.Track {
	t := gate.Track{Gates: gates, Owner: owner, Done: true}
	for i := range gates {
		gates[i].ID, gates[i].Number, gates[i].Title = fmt.Sprintf("g%d", i+1), i+1, titles()[i]
		t.Done = t.Done && gates[i].State == gate.Passed
	}
	return t
}

const owner = "whoever runs kubectl against the cluster."

// Waiting is a track right after the attempt was recorded.
func Waiting(now time.Time) gate.Track {
	return track(owner,
		gate.Gate{State: gate.Passed, Sentence: "An install token exists for this attempt. 0 of 25 uses; it expires in 23 h 8 min.", Evidence: []gate.Evidence{{Label: "Uses", Value: "0 of 25", At: now}}},
		gate.Gate{State: gate.Waiting, Sentence: "Nothing has enrolled with this attempt’s token yet. This ends when the agent that the command installs presents it. An agent with an unknown token is refused and cannot be attributed; its log says so."},
		gate.Gate{State: gate.Waiting, Sentence: "Not reached: no collector is enrolled."},
		gate.Gate{State: gate.Waiting, Sentence: "Not reached: no collector is enrolled."})
}

// Passed is a proved track.
func Passed(now time.Time) gate.Track {
	return track("nobody: nothing is left to do.",
		gate.Gate{State: gate.Passed, Sentence: "The token of this attempt has expired, and an agent enrolled with it in time.", Evidence: []gate.Evidence{{Label: "Token", Value: "pit_8Wq2…, expired", At: now.Add(-48 * time.Hour)}}},
		gate.Gate{State: gate.Passed, Sentence: "3 collectors enrolled with this attempt’s token. Collectors create no host record, so this cluster never appears under Hosts.", Evidence: []gate.Evidence{{Label: "Agents", Value: "halden-staging, halden-staging-1, halden-staging-2", At: now}}},
		gate.Gate{State: gate.Passed, Sentence: "halden-staging was heard 9 s ago; 2 standbys are connected and do not beat.", Evidence: []gate.Evidence{{Label: "Last heartbeat", Value: "epoch 3, sync 812", At: now.Add(-9 * time.Second)}}},
		gate.Gate{State: gate.Passed, Sentence: "The last sync arrived 1 min ago.", Evidence: []gate.Evidence{{Label: "Last sync", Value: "214 pods, 6 nodes", At: now.Add(-time.Minute)}}})
}

// Failed is a track whose collector died.
func Failed(now time.Time) gate.Track {
	return track(owner,
		gate.Gate{State: gate.Passed, Sentence: "An install token exists for this attempt. 1 of 25 uses; it expires in 23 h 8 min.", Evidence: []gate.Evidence{{Label: "Uses", Value: "1 of 25", At: now}}},
		gate.Gate{State: gate.Passed, Sentence: "1 collector enrolled with this attempt’s token. Collectors create no host record, so this cluster never appears under Hosts.", Evidence: []gate.Evidence{{Label: "Agent", Value: "halden-dr, version 0.9.2", At: now.Add(-41 * time.Minute)}}},
		gate.Gate{
			State: gate.Failed, Sentence: "halden-dr was last heard 26 min ago, beyond the 5-minute window. It is the only agent of this attempt, so this is not a quiet standby.",
			Action:   &gate.Action{Text: "see why the pod stopped.", Command: "kubectl -n proxima-system logs deployment/proxima-cluster-agent --tail=100"},
			Evidence: []gate.Evidence{{Label: "Last heartbeat", Value: "sync 4", At: now.Add(-26 * time.Minute)}, {Label: "Last error", Value: "out of memory: limit 128Mi reached", At: now.Add(-27 * time.Minute), Reported: true}},
		},
		gate.Gate{
			State: gate.Failed, Sentence: "No inventory from this attempt’s collector within 10 minutes, twice PROXIMA_K8S_SYNC_INTERVAL of 5m. A cluster halden-dr exists in prod, published by another install; Console does not count it for this attempt.",
			Action: &gate.Action{Text: "read the log above for Kubernetes API permission errors. If the other install is this same cluster, uninstall the older release; if not, record this one under another name.", Offer: gate.OfferOpenCluster},
		})
}

// Mixed is a track with the states that the others lack.
func Mixed(now time.Time) gate.Track {
	return track(owner,
		gate.Gate{State: gate.Failed, Sentence: "The token of this attempt expired 2 h ago, and nothing enrolled with it.", Action: &gate.Action{Text: "mint a new token and run the command again.", Offer: gate.OfferNewToken}, Evidence: []gate.Evidence{{Label: "Token", Value: Hostile, At: now.Add(-2 * time.Hour)}}},
		gate.Gate{State: gate.Warning, Sentence: "The agents of this attempt could not be read: the database did not answer."},
		gate.Gate{State: gate.Blocked, Sentence: "Nothing was attempted: gate 1 failed."},
		gate.Gate{State: gate.Failed, Sentence: Hostile, Action: &gate.Action{Text: "accept the new identity if the cluster was rebuilt.", Offer: gate.OfferAcceptIdentity}})
}

// audited is the invented audit log: a morning's work, and what is older on further pages.
func audited(before func(time.Duration) time.Time) []audit.Event {
	mira := access.Principal{UserID: "us_mira", Email: "mira.okafor@ostmark.example", RemoteAddr: "10.20.4.17"}
	jonas := access.Principal{UserID: "us_jonas", Email: "jonas.lind@ostmark.example", RemoteAddr: "2001:db8:4c01:77:a1b2:c3d4:e5f6:1031", APITokenID: "apt_ci"}
	out := []audit.Event{
		mira.Did(before(2*time.Minute), audit.RoleAssigned).On("user", "us_tomasz", "tomasz.wrona@ostmark.example").In("cl_halden", "").With("role", "Viewer"),
		mira.Did(before(6*time.Minute), audit.RoleUpdated).On("role", "rol_1", "Night shift").With("name_before", "Nights").With("name_after", "Night shift").
			With("permissions_before", "hosts:read, agents:read").With("permissions_after", "hosts:read, agents:read, agents:write, audit:read"),
		jonas.Did(before(25*time.Minute), audit.AgentRevoked).On("agent", "ag_0", "ostra-w-01").In("cl_ostra", "en_ostra_prod").With("cluster_slug", "ostra-web").With("type", "k8s-node-monitor"),
		audit.Agent(before(time.Hour), audit.AgentEnrolled, "ag_c", "ostra-web").On("agent", "ag_c", "ostra-web").In("cl_ostra", "en_ostra_prod").
			With("cluster_slug", "ostra-web").With("token", "pit_8Wq2").With("version", "0.9.2").With("type", "collector"),
		audit.System(before(90*time.Minute), audit.SignInFailed).On("user", "us_tomasz", "tomasz.wrona@ostmark.example").With("account", "tomasz.wrona@ostmark.example").With("window", "15"),
		mira.Did(before(2*time.Hour), audit.InstallTokenMinted).On("install_token", "it_1", "pit_8Wq2").In("cl_halden", "en_halden_prod").With("max_uses", "25").With("expires_at", "2026-12-01T13:40:12Z"),
		mira.Did(before(3*time.Hour), audit.ClientRenamed).On("client", "cl_hostile", `<b onmouseover="alert(1)">`).In("cl_hostile", "").With("before", "Halden").With("after", `<b onmouseover="alert(1)">`),
		audit.System(before(5*time.Hour), audit.AuditPruned).On("audit_log", "", "").With("removed", "214").With("until", "2025-11-30T09:32:08Z"),
	}
	for i := range 120 {
		out = append(out, jonas.Did(before(time.Duration(24+i)*time.Hour), audit.SignedIn).On("user", "us_jonas", jonas.Email))
	}
	for i := range out {
		out[i].ID = fmt.Sprintf("aud_%d", i)
	}
	return out
}

func tokens(w *World, before func(time.Duration) time.Time) {
	one := func(id, client, environment, prefix, name string, most, used int, minted, ends time.Duration) enrollment.Token {
		return enrollment.Token{
			ID: id, ClientID: "cl_" + client, EnvironmentID: "en_" + client + "_" + environment, Prefix: prefix, Name: name, MaxUses: most, Uses: used,
			CreatedAt: before(minted), ExpiresAt: before(ends), CreatedBy: "us_mira", CreatedByName: "mira@ostmark.example", CollectorsEnrolled: min(used, 3),
		}
	}
	w.Tokens = []enrollment.Token{
		one("tk_live", "ostra", "prod", "pit_8Wq2", "", 25, 1, 52*time.Minute, -23*time.Hour),
		one("tk_many", "kivu", "prod", "pit_QQ1x", "rack 14 import", 0, 112, 22*time.Hour, -2*time.Hour),
		one("tk_old", "halden", "prod", "pit_0aVe", Hostile, 25, 0, 49*time.Hour, 25*time.Hour),
		one("tk_used", "ostra", "prod", "pit_Rw9k", "", 1, 1, 5*time.Hour, -19*time.Hour),
	}
	w.Tokens[0].OnboardingID, w.Tokens[0].OnboardingName = "ob_waiting", "Ostra Stores"
	w.Tokens[1].AgentType, w.Tokens[3].SucceededAt = fleet.TypeNodeMonitor, before(4*time.Hour)
	w.Findings = map[string]enrollment.Findings{"ag_c": {TokenID: "tk_live", AgentName: "ostra-web", ReceivedAt: before(40 * time.Minute), Items: []enrollment.Finding{
		{Check: "backend", Status: "ok", Message: "https://console.ostmark.example answers, 1.3 of TLS."},
		{Check: "rbac", Status: "warning", Message: "The service account cannot list services.", Cure: "Apply the ClusterRole of the manifest again."},
		{Check: "argo", Status: "skipped", Message: "No Argo CD is installed."},
	}}}
}
