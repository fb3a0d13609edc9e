package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	api "prxm.uz/proxima/api/console"
	"prxm.uz/proxima/internal/console/fleet"
	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/wire"
)

// defaultLimit is the length of a list where the request names none.
const defaultLimit = 100

func limit(asked *int) int {
	if asked == nil {
		return defaultLimit
	}
	return *asked
}

// sorting splits a leading hyphen off, which turns the order around.
func sorting(asked *string) (key string, desc bool) {
	key, desc = strings.CutPrefix(given(asked), "-")
	return key, desc
}

// ListClusters implements the operation listClusters.
func (s *server) ListClusters(ctx context.Context, r api.ListClustersRequestObject) (api.ListClustersResponseObject, error) {
	q := inventory.ClusterQuery{
		ClientID: given(r.Params.Client), EnvironmentID: given(r.Params.Environment), Text: given(r.Params.Q),
		Limit: limit(r.Params.Limit), Offset: given(r.Params.Offset),
	}
	q.Sort, q.Desc = sorting(r.Params.Sort)
	clusters, total, err := s.Inventory.Clusters(ctx, who(ctx), q)
	if err != nil {
		return nil, err
	}
	return api.ListClusters200JSONResponse{Items: each(clusters, cluster), Total: total}, nil
}

// GetCluster implements the operation getCluster.
func (s *server) GetCluster(ctx context.Context, r api.GetClusterRequestObject) (api.GetClusterResponseObject, error) {
	c, err := s.Inventory.Cluster(ctx, who(ctx), r.ClusterID)
	if err != nil {
		return nil, err
	}
	return api.GetCluster200JSONResponse(cluster(c)), nil
}

// RemoveCluster implements the operation removeCluster.
func (s *server) RemoveCluster(ctx context.Context, r api.RemoveClusterRequestObject) (api.RemoveClusterResponseObject, error) {
	return api.RemoveCluster204Response{}, s.Inventory.Remove(ctx, who(ctx), r.ClusterID)
}

// GetRemoval implements the operation getRemoval.
func (s *server) GetRemoval(ctx context.Context, r api.GetRemovalRequestObject) (api.GetRemovalResponseObject, error) {
	found, err := s.Inventory.Removal(ctx, who(ctx), r.ClusterID)
	if err != nil {
		return nil, err
	}
	return api.GetRemoval200JSONResponse(removal(found)), nil
}

// AcceptIdentity implements the operation acceptIdentity.
func (s *server) AcceptIdentity(ctx context.Context, r api.AcceptIdentityRequestObject) (api.AcceptIdentityResponseObject, error) {
	c, err := s.Inventory.AcceptIdentity(ctx, who(ctx), r.ClusterID, r.Body.UID)
	if err != nil {
		return nil, err
	}
	return api.AcceptIdentity200JSONResponse(cluster(c)), nil
}

// ListObjects implements the operation listObjects.
func (s *server) ListObjects(ctx context.Context, r api.ListObjectsRequestObject) (api.ListObjectsResponseObject, error) {
	q := inventory.Query{
		ClusterID: r.ClusterID, Section: inventory.Section(r.Section), Namespace: given(r.Params.Namespace),
		State: given(r.Params.State), Kind: given(r.Params.Kind), Node: given(r.Params.Node), Text: given(r.Params.Q),
		Limit: limit(r.Params.Limit), Offset: given(r.Params.Offset),
	}
	q.Sort, q.Desc = sorting(r.Params.Sort)
	page, err := s.Inventory.Objects(ctx, who(ctx), q)
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(slices.Clone(page.Cluster.Kinds), func(k inventory.KindState) bool { return sectionOf(k.Kind) != q.Section })
	return objectList{
		Items: each(page.Objects, func(o inventory.Object) json.RawMessage { return o.Body }), Total: page.Total, Kinds: each(kinds, kind),
	}, nil
}

// sectionOf says which section shows a kind.
func sectionOf(k wire.Kind) inventory.Section {
	switch k {
	case wire.KindDeployments, wire.KindStatefulSets, wire.KindDaemonSets:
		return inventory.SectionWorkloads
	case wire.KindNodes, wire.KindNamespaces, wire.KindPods, wire.KindServices, wire.KindEvents:
	}
	return inventory.Section(k)
}

// objectList is the contract's ObjectList with the stored JSON passed through as it is.
type objectList struct {
	Items []json.RawMessage `json:"items"`
	Total int               `json:"total"`
	Kinds []api.KindState   `json:"kinds"`
}

// VisitListObjectsResponse implements the response of listObjects.
func (l objectList) VisitListObjectsResponse(w http.ResponseWriter) error {
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(body, '\n'))
	return err
}

// ListAgents implements the operation listAgents.
func (s *server) ListAgents(ctx context.Context, r api.ListAgentsRequestObject) (api.ListAgentsResponseObject, error) {
	agents, total, err := s.Fleet.Agents(ctx, who(ctx), fleet.Filter{
		Type: fleet.Type(given(r.Params.Type)), ClientID: given(r.Params.Client), EnvironmentID: given(r.Params.Environment),
		ClusterSlug: given(r.Params.ClusterSlug), Limit: limit(r.Params.Limit), Offset: given(r.Params.Offset),
	})
	if err != nil {
		return nil, err
	}
	return api.ListAgents200JSONResponse{Items: each(agents, agent), Total: total}, nil
}

// GetAgent implements the operation getAgent.
func (s *server) GetAgent(ctx context.Context, r api.GetAgentRequestObject) (api.GetAgentResponseObject, error) {
	a, err := s.Fleet.Agent(ctx, who(ctx), r.AgentID)
	if err != nil {
		return nil, err
	}
	out := agent(a)
	found, err := s.Enrollment.FindingsOf(ctx, who(ctx), a)
	if err != nil {
		return nil, err
	}
	if found != nil {
		out.Findings = new(each(found.Items, finding))
	}
	return api.GetAgent200JSONResponse(out), nil
}

// RotateCredentials implements the operation rotateCredentials.
func (s *server) RotateCredentials(ctx context.Context, r api.RotateCredentialsRequestObject) (api.RotateCredentialsResponseObject, error) {
	a, err := s.Fleet.RotateCredentials(ctx, who(ctx), r.AgentID)
	if err != nil {
		return nil, err
	}
	return api.RotateCredentials200JSONResponse(agent(a)), nil
}

// DeleteAgent implements the operation deleteAgent.
func (s *server) DeleteAgent(ctx context.Context, r api.DeleteAgentRequestObject) (api.DeleteAgentResponseObject, error) {
	return api.DeleteAgent204Response{}, s.Fleet.Delete(ctx, who(ctx), r.AgentID)
}

// ReleaseIdentity implements the operation releaseIdentity.
func (s *server) ReleaseIdentity(ctx context.Context, r api.ReleaseIdentityRequestObject) (api.ReleaseIdentityResponseObject, error) {
	a, err := s.Fleet.ReleaseIdentity(ctx, who(ctx), r.AgentID)
	if err != nil {
		return nil, err
	}
	return api.ReleaseIdentity200JSONResponse(agent(a)), nil
}

// RevokeAgent implements the operation revokeAgent.
func (s *server) RevokeAgent(ctx context.Context, r api.RevokeAgentRequestObject) (api.RevokeAgentResponseObject, error) {
	a, err := s.Fleet.Revoke(ctx, who(ctx), r.AgentID)
	if err != nil {
		return nil, err
	}
	return api.RevokeAgent200JSONResponse(agent(a)), nil
}
