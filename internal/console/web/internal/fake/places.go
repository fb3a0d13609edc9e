package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/problem"
	"prxm.uz/proxima/internal/console/tenancy"
)

// ClientSummaries implements web.Tenancy.
func (t Tenancy) ClientSummaries(ctx context.Context, p access.Principal, q tenancy.ClientQuery) ([]tenancy.ClientSummary, int, error) {
	places, err := t.PlacesFor(ctx, p, access.ClientsRead)
	if err != nil {
		return nil, 0, err
	}
	var out []tenancy.ClientSummary
	for _, c := range places.Clients {
		if !strings.Contains(strings.ToLower(c.Name), strings.ToLower(q.Text)) {
			continue
		}
		summary := tenancy.ClientSummary{Client: c}
		environments, err := t.EnvironmentSummaries(ctx, p, c.ID)
		if err != nil {
			return nil, 0, err
		}
		for _, e := range environments {
			summary.Environments++
			summary.Clusters += e.Clusters
		}
		out = append(out, summary)
	}
	return cut(out, q.Offset, q.Limit), len(out), nil
}

// EnvironmentSummaries implements web.Tenancy.
func (t Tenancy) EnvironmentSummaries(ctx context.Context, p access.Principal, clientID string) ([]tenancy.EnvironmentSummary, error) {
	environments, err := t.environmentsOf(ctx, p, clientID)
	var out []tenancy.EnvironmentSummary
	for _, e := range environments {
		out = append(out, tenancy.EnvironmentSummary{Environment: e, Clusters: t.contents(e.ID).Clusters})
	}
	return out, err
}

func (t Tenancy) contents(environmentID string) tenancy.Contents {
	t.Lock()
	defer t.Unlock()
	c := tenancy.Contents{PastAttempts: 1, PastTokens: 2, Assignments: 2}
	for _, one := range t.Clusters {
		if one.EnvironmentID == environmentID {
			c.Clusters++
		}
	}
	for _, one := range t.Agents {
		if one.EnvironmentID == environmentID {
			c.Agents++
		}
	}
	return c
}

// Client implements web.Tenancy.
func (t Tenancy) Client(ctx context.Context, p access.Principal, clientID string) (tenancy.Client, error) {
	places, err := t.PlacesFor(ctx, p, access.ClientsRead)
	for _, c := range places.Clients {
		if c.ID == clientID {
			return c, err
		}
	}
	return tenancy.Client{}, notFound("client")
}

// Environment implements web.Tenancy.
func (t Tenancy) Environment(ctx context.Context, p access.Principal, environmentID string) (tenancy.Environment, error) {
	environments, err := t.environmentsOf(ctx, p, "")
	for _, e := range environments {
		if e.ID == environmentID {
			return e, err
		}
	}
	return tenancy.Environment{}, notFound("environment")
}

// checkName refuses a name that is empty or taken.
func checkName(name string, taken ...string) error {
	for _, other := range taken {
		if strings.EqualFold(name, other) {
			return problem.New(problem.Conflict, "name_taken", fmt.Sprintf("There is already one named %q.", name)).WithCure("Choose another name.").InField("name")
		}
	}
	if name == "" {
		return problem.New(problem.Invalid, "name_invalid", "The name is empty.").WithCure("Type one.").InField("name")
	}
	return nil
}

// RenameClient implements web.Tenancy.
func (t Tenancy) RenameClient(_ context.Context, _ access.Principal, clientID, name string) (tenancy.Client, error) {
	t.Lock()
	defer t.Unlock()
	var taken []string
	at := -1
	for i, other := range t.Clients {
		if other.ID == clientID {
			at = i
		} else {
			taken = append(taken, other.Name)
		}
	}
	if at < 0 {
		return tenancy.Client{}, notFound("client")
	}
	if err := checkName(name, taken...); err != nil {
		return tenancy.Client{}, err
	}
	t.Clients[at].Name = name
	return t.Clients[at], nil
}

// RenameEnvironment implements web.Tenancy.
func (t Tenancy) RenameEnvironment(ctx context.Context, p access.Principal, environmentID, name string) (tenancy.Environment, error) {
	e, err := t.Environment(ctx, p, environmentID)
	if err != nil {
		return e, err
	}
	t.Lock()
	defer t.Unlock()
	var taken []string
	at := 0
	for i, other := range t.Environments {
		if other.ID == environmentID {
			at = i
		} else if other.ClientID == e.ClientID {
			taken = append(taken, other.Name)
		}
	}
	if err := checkName(name, taken...); err != nil {
		return e, err
	}
	t.Environments[at].Name = name
	return t.Environments[at], nil
}

// ClientContents implements web.Tenancy.
func (t Tenancy) ClientContents(ctx context.Context, p access.Principal, clientID string) (tenancy.Client, tenancy.Contents, error) {
	c, err := t.Client(ctx, p, clientID)
	if err != nil {
		return c, tenancy.Contents{}, err
	}
	contents := tenancy.Contents{Assignments: 1}
	environments, err := t.environmentsOf(ctx, p, clientID)
	for _, e := range environments {
		contents.Environments = append(contents.Environments, e.Name)
	}
	return c, contents, err
}

// EnvironmentContents implements web.Tenancy.
func (t Tenancy) EnvironmentContents(ctx context.Context, p access.Principal, environmentID string) (tenancy.Environment, tenancy.Contents, error) {
	e, err := t.Environment(ctx, p, environmentID)
	return e, t.contents(environmentID), err
}

func inUse(what string, c tenancy.Contents) error {
	if c.Blocks() == "" {
		return nil
	}
	return problem.New(problem.Conflict, "in_use", what+" still holds "+c.Blocks()+".").WithCure(c.Cure())
}

// DeleteClient implements web.Tenancy.
func (t Tenancy) DeleteClient(ctx context.Context, p access.Principal, clientID string) error {
	c, contents, err := t.ClientContents(ctx, p, clientID)
	if err == nil {
		err = inUse("The client "+c.Name, contents)
	}
	if err != nil {
		return err
	}
	t.Lock()
	defer t.Unlock()
	t.Clients = slices.DeleteFunc(t.Clients, func(c tenancy.Client) bool { return c.ID == clientID })
	return nil
}

// DeleteEnvironment implements web.Tenancy.
func (t Tenancy) DeleteEnvironment(ctx context.Context, p access.Principal, environmentID string) error {
	e, contents, err := t.EnvironmentContents(ctx, p, environmentID)
	if err == nil {
		err = inUse("The environment "+e.Name, contents)
	}
	if err != nil {
		return err
	}
	t.Lock()
	defer t.Unlock()
	t.Environments = slices.DeleteFunc(t.Environments, func(e tenancy.Environment) bool { return e.ID == environmentID })
	return nil
}

// environmentsOf lists those of every client where clientID is "".
func (t Tenancy) environmentsOf(ctx context.Context, p access.Principal, clientID string) ([]tenancy.Environment, error) {
	places, err := t.PlacesFor(ctx, p, access.ClientsRead)
	elsewhere := func(e tenancy.Environment) bool { return clientID != "" && e.ClientID != clientID }
	return slices.DeleteFunc(places.Environments, elsewhere), err
}
