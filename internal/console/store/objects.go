package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"prxm.uz/proxima/internal/console/inventory"
	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// On PostgreSQL every statement is a round trip, so many objects go together; on SQLite a prepared
// statement in a loop is ten times faster than that.
const (
	batchFrom = 100 // fewer than this go one by one
	batchRows = 250 // rows of one statement
)

func (t *tx) ApplyObjects(ctx context.Context, ch inventory.Change) error {
	cluster := ch.ClusterID
	err := t.upsertObjects(ctx, cluster, ch.Upsert)
	if err == nil {
		err = t.eachKey(ctx, ch.Delete, "DELETE FROM inventory_objects", cluster, func(k inventory.Key) error {
			return t.q.DeleteObject(ctx, sqlgen.DeleteObjectParams{
				ClusterID: cluster, Section: string(k.Section), Namespace: k.Namespace, Name: k.Name, Kind: k.Kind,
			})
		})
	}
	if err == nil {
		since := dbtype.At(ch.UnseenSince)
		for _, k := range ch.Unseen {
			if err = t.q.MarkObjectUnseen(ctx, sqlgen.MarkObjectUnseenParams{
				ClusterID: cluster, Section: string(k.Section), Namespace: k.Namespace, Name: k.Name, Kind: k.Kind,
				UnseenSinceAt: since,
			}); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = t.eachKey(ctx, ch.Clear, "UPDATE inventory_objects SET unseen_since_at = NULL", cluster, func(k inventory.Key) error {
			return t.q.ClearObjectUnseen(ctx, sqlgen.ClearObjectUnseenParams{
				ClusterID: cluster, Section: string(k.Section), Namespace: k.Namespace, Name: k.Name, Kind: k.Kind,
			})
		})
	}
	errs := inventoryErrors()
	errs.inUse = errs.missing // the cluster is not there
	return errs.translate(err, "apply the objects of cluster "+cluster)
}

func objectParams(clusterID string, o inventory.Object) sqlgen.PutObjectParams {
	return sqlgen.PutObjectParams{
		ClusterID: clusterID, Section: string(o.Section), Namespace: o.Namespace, Name: o.Name, Kind: o.Kind,
		Uid: o.UID, Search: fold(o.Namespace + "/" + o.Name), State: o.State, Node: o.Node, Owner: o.Owner,
		Restarts: o.Restarts, Ready: o.Ready, Desired: o.Desired, CpuMillis: o.CPUMillis,
		MemoryBytes: o.MemoryBytes, Occurrences: o.Count, OccurredAt: dbtype.At(o.At), Hash: o.Hash[:], Body: notNil(o.Body),
	}
}

func (t *tx) upsertObjects(ctx context.Context, clusterID string, objects []inventory.Object) error {
	if t.engine == enginePostgres && len(objects) >= batchFrom {
		for len(objects) > 0 {
			n := min(len(objects), batchRows)
			if err := t.upsertBatch(ctx, clusterID, objects[:n]); err != nil {
				return err
			}
			objects = objects[n:]
		}
		return nil
	}
	for i := range objects {
		if err := t.q.PutObject(ctx, objectParams(clusterID, objects[i])); err != nil {
			return err
		}
	}
	return nil
}

// upsertBatch is PutObject for several rows. One statement must not name an object twice, which
// PostgreSQL refuses; the key of an inventory's objects is unique in it.
func (t *tx) upsertBatch(ctx context.Context, clusterID string, objects []inventory.Object) error {
	var l list
	var values []string
	for i := range objects {
		p := objectParams(clusterID, objects[i])
		var marks []string
		for _, v := range []any{
			p.ClusterID, p.Section, p.Namespace, p.Name, p.Kind, p.Uid, p.Search, p.State, p.Node, p.Owner,
			p.Restarts, p.Ready, p.Desired, p.CpuMillis, p.MemoryBytes, p.Occurrences, p.OccurredAt, p.Hash, p.Body,
		} {
			marks = append(marks, l.arg(v))
		}
		values = append(values, "("+strings.Join(marks, ", ")+")")
	}
	query := `INSERT INTO inventory_objects (
	cluster_id, section, namespace, name, kind, uid, search, state, node, owner,
	restarts, ready, desired, cpu_millis, memory_bytes, occurrences, occurred_at, hash, body
) VALUES ` + strings.Join(values, ", ") + `
ON CONFLICT (cluster_id, section, namespace, name, kind) DO UPDATE
SET uid = excluded.uid, state = excluded.state, node = excluded.node, owner = excluded.owner,
	restarts = excluded.restarts, ready = excluded.ready, desired = excluded.desired,
	cpu_millis = excluded.cpu_millis, memory_bytes = excluded.memory_bytes,
	occurrences = excluded.occurrences, occurred_at = excluded.occurred_at, unseen_since_at = NULL,
	hash = excluded.hash, body = excluded.body`
	_, err := t.raw.ExecContext(ctx, query, l.args...)
	return err
}

// eachKey runs a statement for every key: one by one, or many together where that is faster.
func (t *tx) eachKey(ctx context.Context, keys []inventory.Key, statement, clusterID string, single func(inventory.Key) error) error {
	if t.engine != enginePostgres || len(keys) < batchFrom {
		for _, k := range keys {
			if err := single(k); err != nil {
				return err
			}
		}
		return nil
	}
	for len(keys) > 0 {
		n := min(len(keys), batchRows)
		var l list
		l.equal("cluster_id", clusterID)
		var rows []string
		for _, k := range keys[:n] {
			var marks []string
			for _, v := range []string{string(k.Section), k.Namespace, k.Name, k.Kind} {
				marks = append(marks, "CAST("+l.arg(v)+" AS TEXT)")
			}
			rows = append(rows, "("+strings.Join(marks, ", ")+")")
		}
		l.fixed("(section, namespace, name, kind) IN (VALUES " + strings.Join(rows, ", ") + ")")
		if _, err := t.raw.ExecContext(ctx, statement+l.condition(), l.args...); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func (s inventoryStore) Hashes(ctx context.Context, clusterID string) (map[inventory.Key]inventory.Stored, error) {
	found, err := s.db.read.ObjectHashes(ctx, clusterID)
	if err != nil {
		return nil, inventoryErrors().translate(err, "hashes of cluster "+clusterID)
	}
	all := make(map[inventory.Key]inventory.Stored, len(found))
	for _, row := range found {
		stored := inventory.Stored{UnseenSince: row.UnseenSinceAt.Time}
		if copy(stored.Hash[:], row.Hash) != len(stored.Hash) {
			return nil, fmt.Errorf("hash of %s/%s in cluster %s has %d bytes", row.Namespace, row.Name, clusterID, len(row.Hash))
		}
		all[inventory.Key{Section: inventory.Section(row.Section), Kind: row.Kind, Namespace: row.Namespace, Name: row.Name}] = stored
	}
	return all, nil
}

// selectObjects is how lists read objects; scanObject takes its columns.
const selectObjects = `SELECT section, kind, namespace, name, uid, state, node, owner, restarts, ready, desired,
	cpu_millis, memory_bytes, occurrences, occurred_at, unseen_since_at, hash, body
FROM inventory_objects`

func scanObject(r *sql.Rows) (inventory.Object, error) {
	var o inventory.Object
	var occurredAt, unseenSince dbtype.Time
	var hash []byte
	err := r.Scan(&o.Section, &o.Kind, &o.Namespace, &o.Name, &o.UID, &o.State, &o.Node, &o.Owner, &o.Restarts,
		&o.Ready, &o.Desired, &o.CPUMillis, &o.MemoryBytes, &o.Count, &occurredAt, &unseenSince, &hash, &o.Body)
	copy(o.Hash[:], hash)
	o.At, o.UnseenSince = occurredAt.Time, unseenSince.Time
	return o, err
}

// objectSorting has the column of each of inventory.SortKeys. A rising age is a falling time.
func objectSorting() sorting {
	return sorting{
		"":          {sql: "name"},
		"name":      {sql: "name"},
		"namespace": {sql: "namespace"},
		"kind":      {sql: "kind"},
		"state":     {sql: "state"},
		"node":      {sql: "node"},
		"owner":     {sql: "owner"},
		"restarts":  {sql: "restarts"},
		"ready":     {sql: "ready"},
		"desired":   {sql: "desired"},
		"cpu":       {sql: "cpu_millis"},
		"memory":    {sql: "memory_bytes"},
		"count":     {sql: "occurrences"},
		"age":       {sql: "occurred_at", nullable: true, inverted: true},
	}
}

func (s inventoryStore) Objects(ctx context.Context, q inventory.Query) (page inventory.Page, err error) {
	var l list
	l.equal("cluster_id", q.ClusterID)
	l.equal("section", string(q.Section))
	l.equalIf("namespace", q.Namespace)
	l.equalIf("state", q.State)
	l.equalIf("kind", q.Kind)
	l.equalIf("node", q.Node)
	l.contains("search", q.Text)
	order, err := objectSorting().by(q.Sort, q.Desc, "name", "namespace", "kind")
	if err != nil {
		return page, err
	}
	err = s.db.snapshot(ctx, func(r reads) error {
		if page, err = r.countObjects(ctx, &l); err != nil {
			return err
		}
		query := selectObjects + l.condition() + order + l.page(q.Limit, 500, q.Offset)
		page.Objects, err = rows(ctx, r.raw, query, l.args, scanObject)
		return err
	})
	return page, inventoryErrors().translate(err, "list "+string(q.Section)+" of cluster "+q.ClusterID)
}

// countObjects counts what matches, and lists what the filters of the section offer. The first two values of the list
// are the cluster and the section.
func (r reads) countObjects(ctx context.Context, l *list) (page inventory.Page, err error) {
	const of = " FROM inventory_objects WHERE cluster_id = $1 AND section = $2 AND "
	query := "SELECT 'total', '', COUNT(*) FROM inventory_objects" + l.condition() +
		" UNION ALL SELECT DISTINCT 'namespace', namespace, 0" + of + "namespace <> ''" +
		" UNION ALL SELECT DISTINCT 'state', state, 0" + of + "state <> ''"
	_, err = rows(ctx, r.raw, query, l.args, func(r *sql.Rows) (struct{}, error) {
		var what, value string
		var n int
		err := r.Scan(&what, &value, &n)
		switch what {
		case "total":
			page.Total = n
		case "namespace":
			page.Namespaces = append(page.Namespaces, value)
		case "state":
			page.States = append(page.States, value)
		}
		return struct{}{}, err
	})
	slices.Sort(page.Namespaces)
	slices.Sort(page.States)
	return page, err
}

func (s inventoryStore) Object(ctx context.Context, clusterID string, k inventory.Key) (inventory.Object, error) {
	var l list
	l.equal("cluster_id", clusterID)
	l.equal("section", string(k.Section))
	l.equal("namespace", k.Namespace)
	l.equal("name", k.Name)
	l.equal("kind", k.Kind)
	o, err := one(ctx, s.db.reader, selectObjects+l.condition(), l.args, scanObject)
	return o, inventoryErrors().translate(err, string(k.Section)+" "+k.Namespace+"/"+k.Name)
}
