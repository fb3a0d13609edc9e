package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"time"

	"prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/agent/identity"
	"prxm.uz/proxima/test/harness"
)

// identityRows are about who an agent is, and which cluster.
func identityRows() []row {
	const section = "Identity"
	// stateful starts an agent, kills it after its first sync, and answers its directory.
	stateful := func(s *scene) string {
		s.attempt()
		dir := s.TempDir()
		a := s.agentIn(dir)
		s.await(4, passed)
		s.kill(a)
		return dir
	}
	foreign := map[string]string{"PROXIMA_K8S_SYNC_INTERVAL": "5m"}
	return []row{
		{
			section: section, name: "The command ran twice, and both pods live", gate: 2, state: passed, says: []string{"Another pod tried to enroll", "itself was heard since"}, cure: []string{"second copy"},
			arrange: func(s *scene) {
				s.synced()
				s.logged(s.agent(nil), "already_enrolled")
			},
		},
		{
			section: section, name: "Its state is lost, and its name taken", gate: 2, state: failed, says: []string{"keeps the identity"}, cure: []string{"release its identity"},
			arrange: func(s *scene) {
				a := s.synced()
				s.kill(a)
				s.later(3 * time.Minute) // it is not there any more
				s.logged(s.agent(nil), "already_enrolled")
			},
		},
		{
			section: section, name: "Its state file is cut short", gate: 3, state: failed, says: []string{"5-minute"}, cure: []string{"log"},
			arrange: func(s *scene) {
				dir := stateful(s)
				if err := os.Truncate(filepath.Join(dir, "state.json"), 40); err != nil {
					s.Fatal(err)
				}
				s.dies(s.optionsIn(dir), "cannot go on")
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "Its state file cannot be read", gate: 3, state: failed, says: []string{"5-minute"}, cure: []string{"log"},
			arrange: func(s *scene) {
				dir := stateful(s)
				path := filepath.Join(dir, "state.json")
				if err := os.Remove(path); err != nil {
					s.Fatal(err)
				}
				if err := os.Symlink("state.json", path); err != nil { // root reads whatever its mode is
					s.Fatal(err)
				}
				s.dies(s.optionsIn(dir), "cannot go on")
				s.later(6 * time.Minute)
			},
		},
		{
			section: section, name: "Its state file is of an agent of another type", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				s.attempt()
				dir := s.TempDir()
				s.stateOfNodeAgent(dir)
				s.dies(s.optionsIn(dir), "cannot go on")
			},
		},
		{
			section: section, name: "Its data directory has no room", gate: 2, state: waiting, says: []string{"No collector has enrolled"},
			arrange: func(s *scene) {
				dir := s.filesystem("64k")
				s.fill(dir)
				s.attempt()
				s.dies(s.optionsIn(dir), "cannot go on")
			},
		},
		{
			section: section, name: "Two processes on one data directory", gate: 4, state: passed,
			arrange: func(s *scene) {
				s.attempt()
				dir := s.TempDir()
				s.agentIn(dir)
				s.await(4, passed)
				s.dies(s.optionsIn(dir), "cannot go on")
			},
		},
		{
			section: section, name: "A cluster of that name exists from another install", gate: 4, state: waiting, says: []string{"exists in prod", "agent other-0 of another install", "due within 10 minutes"},
			arrange: func(s *scene) {
				s.attemptOn(harness.ConsoleOptions{Env: foreign})
				s.other()
				s.unreadable()
			},
		},
		{
			section: section, name: "A cluster of that name exists from another install, and this one sends nothing", gate: 4, state: failed,
			says: []string{"agent other-0 of another install", "within 10 minutes"}, cure: []string{"uninstall the older one", "another name"},
			arrange: func(s *scene) {
				s.attemptOn(harness.ConsoleOptions{Env: foreign})
				s.other()
				s.unreadable()
				s.await(3, passed)
				s.later(11 * time.Minute)
			},
		},
		{
			section: section, name: "Another cluster publishes under the slug", gate: 4, state: failed, says: []string{"second-0", "two clusters run under this slug"}, cure: []string{"uninstall the collector there"},
			arrange: func(s *scene) {
				s.synced()
				s.plane, s.second = s.second, s.plane
				s.replica("second-0", "")
			},
		},
		{
			section: section, name: "The cluster was built anew, and the collector kept its state", gate: 4, state: failed, says: []string{"kube-system UID", "Nothing of it was stored"},
			cure: []string{"accept the new identity"}, never: []string{"two clusters run"},
			arrange: func(s *scene) {
				dir := stateful(s)
				s.plane, s.second = s.second, s.plane
				s.agentIn(dir)
			},
		},
		{
			section: section, name: "A known cluster is installed under a new slug", gate: 4, state: warning, says: []string{"also recorded as halden-prod"}, cure: []string{"Keep one of the records"},
			arrange: func(s *scene) {
				s.synced()
				s.record("Halden anew")
				s.agent(nil)
			},
		},
	}
}

// stateOfNodeAgent leaves the state of a node agent in the directory.
func (s *scene) stateOfNodeAgent(dir string) {
	s.Helper()
	state, err := identity.NewPending("k8s-node-monitor", "node-1", "halden-prod")
	if err != nil {
		s.Fatal(err)
	}
	store, err := identity.Open(dir)
	if err != nil {
		s.Fatal(err)
	}
	defer store.Close()
	if err := store.Save(state); err != nil {
		s.Fatal(err)
	}
}

// other starts a collector of the attempt's slug with a token of another install, and waits for its inventory.
func (s *scene) other() {
	s.Helper()
	var minted console.InstallTokenMinted
	body := map[string]any{"environmentID": s.place.EnvironmentID, "agentType": "collector"}
	s.call(http.MethodPost, "/api/v1/clients/"+s.place.ClientID+"/install-tokens", body, &minted)
	if err := s.plane.AddNamespace(s.Context(), s.namespace()); err != nil {
		s.Fatal(err)
	}
	s.agent(map[string]string{"PROXIMA_INSTALL_TOKEN": minted.Token, "POD_NAME": "other-0", "POD_NAMESPACE": s.namespace()})
	s.syncedAfter(time.Time{})
}

// unreadable starts the attempt's collector without any right to read its cluster.
func (s *scene) unreadable() {
	s.Helper()
	s.agent(map[string]string{"PROXIMA_KUBECONFIG": s.kubeconfig(s.plane.Server(), "not-a-token")})
}
