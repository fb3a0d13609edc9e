package tenancy

import (
	"context"

	"prxm.uz/proxima/internal/console/access"
)

// ClientSummary is a client with what its reader may see of it, counted.
type ClientSummary struct {
	Client

	Environments int
	Clusters     int
}

// EnvironmentSummary is an environment with the number of its clusters, as far as its reader may see them.
type EnvironmentSummary struct {
	Environment

	Clusters int
}

// ClientQuery narrows and cuts a list of clients.
type ClientQuery struct {
	// Text is searched for in names, whatever the case.
	Text   string
	Limit  int
	Offset int
}

// Sight is what a summary may count: environments within one reach, clusters within another.
type Sight struct {
	Environments access.Reach
	Clusters     access.Reach
}

func sightOf(p access.Principal) Sight {
	return Sight{Environments: p.Reach(access.ClientsRead), Clusters: p.Reach(access.HostsRead)}
}

// ClientSummaries reads a page of the clients that p may read, by name, with the number of all that match.
func (s *Service) ClientSummaries(ctx context.Context, p access.Principal, q ClientQuery) ([]ClientSummary, int, error) {
	if !p.AllowsSomewhere(access.ClientsRead) {
		return nil, 0, access.Refuse(access.ClientsRead)
	}
	found, total, err := s.store.ClientSummaries(ctx, q, sightOf(p))
	return found, total, answer(err, "clients", "name")
}

// EnvironmentSummaries lists the environments of a client that p may read, by name.
func (s *Service) EnvironmentSummaries(ctx context.Context, p access.Principal, clientID string) ([]EnvironmentSummary, error) {
	if err := s.mayReadClient(p, clientID); err != nil {
		return nil, err
	}
	found, err := s.store.EnvironmentSummaries(ctx, clientID, sightOf(p))
	return found, answer(err, "environments of client "+clientID, "name")
}
