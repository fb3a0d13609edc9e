package tenancy

import (
	"context"
	"fmt"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/audit"
	"prxm.uz/proxima/internal/console/id"
)

// The longest names, in characters.
const (
	maxClientName      = 100
	maxEnvironmentName = 63
	maxRoleName        = 63
	mostRoles          = 500 // a list of roles is shown whole
	maxUserName        = 100
)

// Clients lists the clients that p may read, by name.
func (s *Service) Clients(ctx context.Context, p access.Principal) ([]Client, error) {
	if !p.AllowsSomewhere(access.ClientsRead) {
		return nil, access.Refuse(access.ClientsRead)
	}
	clients, err := s.store.Clients(ctx, p.Reach(access.ClientsRead))
	if err != nil {
		return nil, fmt.Errorf("list clients: %w", err)
	}
	return clients, nil
}

// PlacesFor lists the clients on which, or on an environment of which, p holds the permission, and those environments.
func (s *Service) PlacesFor(ctx context.Context, p access.Principal, perm access.Permission) (Places, error) {
	if !p.AllowsSomewhere(perm) {
		return Places{}, access.Refuse(perm)
	}
	places, err := s.store.Places(ctx, p.Reach(perm))
	if err != nil {
		return Places{}, fmt.Errorf("list clients and environments: %w", err)
	}
	return places, nil
}

// Client reads a client. A role on one of its environments suffices to see its name.
func (s *Service) Client(ctx context.Context, p access.Principal, clientID string) (Client, error) {
	if err := s.mayReadClient(p, clientID); err != nil {
		return Client{}, err
	}
	c, err := s.store.Client(ctx, clientID)
	return c, answer(err, "client "+clientID, "name")
}

// mayReadClient is Require for reading, widened to those who hold it on one environment of the client.
func (s *Service) mayReadClient(p access.Principal, clientID string) error {
	scope := access.Scope{ClientID: clientID}
	for _, held := range p.Reach(access.ClientsRead).Scopes {
		if held.ClientID == clientID {
			return nil
		}
	}
	return p.Require(access.ClientsRead, scope, "client "+clientID)
}

// CreateClient adds a client.
func (s *Service) CreateClient(ctx context.Context, p access.Principal, name string) (Client, error) {
	if err := p.Require(access.ClientsWrite, access.Scope{}, "console"); err != nil {
		return Client{}, err
	}
	if err := access.CheckName("name", name, maxClientName); err != nil {
		return Client{}, err
	}
	c := Client{ID: id.New("cli"), Name: name, CreatedAt: s.clock.Now()}
	err := s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.InsertClient(ctx, c); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(c.CreatedAt, audit.ClientCreated).On("client", c.ID, c.Name).In(c.ID, ""))
	})
	return c, answer(err, fmt.Sprintf("client named %q", name), "name")
}

// RenameClient renames a client.
func (s *Service) RenameClient(ctx context.Context, p access.Principal, clientID, name string) (Client, error) {
	what := "client " + clientID
	if err := p.Require(access.ClientsWrite, access.Scope{ClientID: clientID}, what); err != nil {
		return Client{}, err
	}
	if err := access.CheckName("name", name, maxClientName); err != nil {
		return Client{}, err
	}
	var c Client
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		if c, err = tx.Client(ctx, clientID); err != nil {
			return answer(err, what, "name")
		}
		before := c.Name
		c.Name = name
		if err := tx.UpdateClient(ctx, c); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(s.clock.Now(), audit.ClientRenamed).On("client", c.ID, name).In(c.ID, "").
			With("before", before).With("after", name))
	})
	return c, answer(err, fmt.Sprintf("client named %q", name), "name")
}

// Environments lists the environments of a client that p may read, by name.
func (s *Service) Environments(ctx context.Context, p access.Principal, clientID string) ([]Environment, error) {
	if !p.AllowsSomewhere(access.ClientsRead) {
		return nil, access.Refuse(access.ClientsRead)
	}
	if !p.Touches(access.Scope{ClientID: clientID}) {
		return nil, notFound("client " + clientID)
	}
	if _, err := s.store.Client(ctx, clientID); err != nil {
		return nil, answer(err, "client "+clientID, "name")
	}
	environments, err := s.store.Environments(ctx, clientID, p.Reach(access.ClientsRead))
	if err != nil {
		return nil, fmt.Errorf("list environments: %w", err)
	}
	return environments, nil
}

// Environment reads an environment on which p holds any permission.
func (s *Service) Environment(ctx context.Context, p access.Principal, environmentID string) (Environment, error) {
	e, err := s.store.Environment(ctx, environmentID)
	if err != nil {
		return Environment{}, answer(err, "environment "+environmentID, "name")
	}
	if !p.Touches(access.Scope{ClientID: e.ClientID, EnvironmentID: e.ID}) {
		return Environment{}, notFound("environment " + environmentID)
	}
	return e, nil
}

// CreateEnvironment adds an environment to a client.
func (s *Service) CreateEnvironment(ctx context.Context, p access.Principal, clientID, name string) (Environment, error) {
	if err := p.Require(access.ClientsWrite, access.Scope{ClientID: clientID}, "client "+clientID); err != nil {
		return Environment{}, err
	}
	if err := access.CheckName("name", name, maxEnvironmentName); err != nil {
		return Environment{}, err
	}
	e := Environment{ID: id.New("env"), ClientID: clientID, Name: name, CreatedAt: s.clock.Now()}
	err := s.store.InTx(ctx, func(tx Tx) error {
		if _, err := tx.Client(ctx, clientID); err != nil {
			return answer(err, "client "+clientID, "name")
		}
		if err := tx.InsertEnvironment(ctx, e); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(e.CreatedAt, audit.EnvironmentCreated).On("environment", e.ID, e.Name).In(clientID, e.ID))
	})
	return e, answer(err, fmt.Sprintf("environment named %q in this client", name), "name")
}

// RenameEnvironment renames an environment.
func (s *Service) RenameEnvironment(ctx context.Context, p access.Principal, environmentID, name string) (Environment, error) {
	e, err := s.Environment(ctx, p, environmentID)
	if err != nil {
		return Environment{}, err
	}
	what := "environment " + environmentID
	if err := p.Require(access.ClientsWrite, access.Scope{ClientID: e.ClientID, EnvironmentID: e.ID}, what); err != nil {
		return Environment{}, err
	}
	if err := access.CheckName("name", name, maxEnvironmentName); err != nil {
		return Environment{}, err
	}
	err = s.store.InTx(ctx, func(tx Tx) (err error) {
		if e, err = tx.Environment(ctx, environmentID); err != nil {
			return answer(err, what, "name")
		}
		before := e.Name
		e.Name = name
		if err := tx.UpdateEnvironment(ctx, e); err != nil {
			return err
		}
		return tx.AppendAudit(ctx, p.Did(s.clock.Now(), audit.EnvironmentRenamed).On("environment", e.ID, name).In(e.ClientID, e.ID).
			With("before", before).With("after", name))
	})
	return e, answer(err, fmt.Sprintf("environment named %q in this client", name), "name")
}
