package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"prxm.uz/proxima/internal/console/access"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
	"prxm.uz/proxima/internal/console/tenancy"
)

// countWithin writes a subquery that counts the rows of a table, known as x, that belong to the outer row and lie within reach.
func (l *list) countWithin(table, belongs, environmentColumn string, reach access.Reach) string {
	inner := list{where: []string{belongs}, args: l.args}
	inner.reach("x.client_id", environmentColumn, reach)
	l.args = inner.args
	return "(SELECT COUNT(*) FROM " + table + " x" + inner.condition() + ")"
}

const selectPlaces = `SELECT c.id, c.name, c.created_at, e.id, e.name, e.created_at
FROM clients c
LEFT JOIN environments e ON e.client_id = c.id`

func (s tenancyStore) Places(ctx context.Context, reach access.Reach) (found tenancy.Places, err error) {
	var within list
	within.reach("e.client_id", "e.id", reach)
	l := list{args: within.args}
	l.touched("c.id", reach)
	query := selectPlaces + strings.Join(append([]string{""}, within.where...), " AND ") + l.condition() + " ORDER BY c.name_folded, c.id, e.name_folded, e.id"
	_, err = rows(ctx, s.db.reader, query, l.args, func(r *sql.Rows) (struct{}, error) {
		var c tenancy.Client
		var environmentID, environmentName dbtype.Text
		var createdAt, environmentAt dbtype.Time
		if err := r.Scan(&c.ID, &c.Name, &createdAt, &environmentID, &environmentName, &environmentAt); err != nil {
			return struct{}{}, err
		}
		c.CreatedAt = createdAt.Time
		if n := len(found.Clients); n == 0 || found.Clients[n-1].ID != c.ID {
			found.Clients = append(found.Clients, c)
		}
		if environmentID != "" {
			found.Environments = append(found.Environments, tenancy.Environment{
				ID: string(environmentID), ClientID: c.ID, Name: string(environmentName), CreatedAt: environmentAt.Time,
			})
		}
		return struct{}{}, nil
	})
	return found, tenancyErrors().translate(err, "list clients and environments")
}

func (s tenancyStore) ClientSummaries(ctx context.Context, q tenancy.ClientQuery, sight tenancy.Sight) ([]tenancy.ClientSummary, int, error) {
	var found []tenancy.ClientSummary
	var total int
	err := s.db.snapshot(ctx, func(read reads) (err error) {
		narrow := func(l *list) {
			l.touched("c.id", sight.Environments)
			l.contains("c.name_folded", q.Text)
		}
		var all, page list
		narrow(&all)
		if total, err = count(ctx, read.raw, "clients c", &all); err != nil {
			return err
		}
		query := "SELECT c.id, c.name, c.created_at, " + page.countWithin("environments", "x.client_id = c.id", "x.id", sight.Environments) + ", " +
			page.countWithin("clusters", "x.client_id = c.id", "x.environment_id", sight.Clusters) + " FROM clients c"
		narrow(&page)
		query += page.condition() + " ORDER BY c.name_folded, c.id" + page.page(q.Limit, 500, q.Offset)
		found, err = rows(ctx, read.raw, query, page.args, func(r *sql.Rows) (tenancy.ClientSummary, error) {
			var c tenancy.ClientSummary
			var created dbtype.Time
			err := r.Scan(&c.ID, &c.Name, &created, &c.Environments, &c.Clusters)
			c.CreatedAt = created.Time
			return c, err
		})
		return err
	})
	return found, total, tenancyErrors().translate(err, "list clients")
}

func (s tenancyStore) EnvironmentSummaries(ctx context.Context, clientID string, sight tenancy.Sight) ([]tenancy.EnvironmentSummary, error) {
	var l list
	query := "SELECT e.id, e.client_id, e.name, e.created_at, " +
		l.countWithin("clusters", "x.environment_id = e.id", "x.environment_id", sight.Clusters) + " FROM environments e"
	l.equal("e.client_id", clientID)
	l.reach("e.client_id", "e.id", sight.Environments)
	query += l.condition() + " ORDER BY e.name_folded, e.id"
	found, err := rows(ctx, s.db.reader, query, l.args, func(r *sql.Rows) (tenancy.EnvironmentSummary, error) {
		var e tenancy.EnvironmentSummary
		var created dbtype.Time
		err := r.Scan(&e.ID, &e.ClientID, &e.Name, &created, &e.Clusters)
		e.CreatedAt = created.Time
		return e, err
	})
	return found, tenancyErrors().translate(err, "list environments")
}

func (r reads) ClientContents(ctx context.Context, clientID string) (c tenancy.Contents, err error) {
	if c.Environments, err = r.q.EnvironmentNames(ctx, clientID); err != nil {
		return c, tenancyErrors().translate(err, "contents of client "+clientID)
	}
	held, err := r.RolesHeldOn(ctx, access.Scope{ClientID: clientID})
	c.Assignments = len(held)
	return c, err
}

func (s tenancyStore) ClientContents(ctx context.Context, clientID string) (c tenancy.Contents, err error) {
	err = s.db.snapshot(ctx, func(r reads) error {
		c, err = r.ClientContents(ctx, clientID)
		return err
	})
	return c, err
}

func (r reads) EnvironmentContents(ctx context.Context, e tenancy.Environment, now time.Time) (tenancy.Contents, error) {
	n, err := r.q.EnvironmentContents(ctx, sqlgen.EnvironmentContentsParams{EnvironmentID: e.ID, ClientID: e.ClientID, Now: dbtype.At(now)})
	return tenancy.Contents{
		Clusters: int(n.Clusters), Agents: int(n.Agents), Attempts: int(n.OpenAttempts), Tokens: int(n.LiveTokens),
		PastAttempts: int(n.Attempts - n.OpenAttempts), PastTokens: int(n.Tokens - n.LiveTokens), Assignments: int(n.Assignments),
	}, tenancyErrors().translate(err, "contents of environment "+e.ID)
}

func (s tenancyStore) EnvironmentContents(ctx context.Context, e tenancy.Environment, now time.Time) (tenancy.Contents, error) {
	return s.db.plain().EnvironmentContents(ctx, e, now)
}

func (t *tx) DeleteClient(ctx context.Context, id string) error {
	n, err := t.q.DeleteClient(ctx, id)
	return tenancyErrors().changed(n, err, "delete client "+id)
}

func (t *tx) DeleteEnvironment(ctx context.Context, e tenancy.Environment) error {
	what := "delete environment " + e.ID
	err := t.q.DeleteEnvironmentTokens(ctx, sqlgen.DeleteEnvironmentTokensParams{ClientID: e.ClientID, EnvironmentID: e.ID})
	if err != nil {
		return tenancyErrors().translate(err, what)
	}
	err = t.q.DeleteEnvironmentAttempts(ctx, sqlgen.DeleteEnvironmentAttemptsParams{ClientID: e.ClientID, EnvironmentID: e.ID})
	if err != nil {
		return tenancyErrors().translate(err, what)
	}
	n, err := t.q.DeleteEnvironment(ctx, e.ID)
	return tenancyErrors().changed(n, err, what)
}

func (r reads) RolesHeldOn(ctx context.Context, scope access.Scope) ([]tenancy.HeldRole, error) {
	found, err := r.q.RolesHeldOn(ctx, sqlgen.RolesHeldOnParams{ClientID: dbtype.Text(scope.ClientID), Environment: scope.EnvironmentID})
	return each(found, func(h sqlgen.RolesHeldOnRow) tenancy.HeldRole {
		return tenancy.HeldRole{UserID: h.UserID, Email: h.Email, Role: h.RoleName}
	}), tenancyErrors().translate(err, "roles held on client "+scope.ClientID)
}

func (t *tx) DeleteRolesHeldOn(ctx context.Context, scope access.Scope) error {
	err := t.q.DeleteRolesHeldOn(ctx, sqlgen.DeleteRolesHeldOnParams{ClientID: dbtype.Text(scope.ClientID), Environment: scope.EnvironmentID})
	return tenancyErrors().translate(err, "delete the roles held on client "+scope.ClientID)
}
