package store

import (
	"testing"

	"prxm.uz/proxima/internal/console/inventory"
)

// eachEngine runs a benchmark on a fresh database of each engine, with one cluster in it.
func eachEngine(b *testing.B, f func(*testing.B, *DB, inventory.Cluster)) {
	b.Helper()
	for name, open := range map[string]func(testing.TB) *DB{"sqlite": openSQLiteCopy, "postgres": openPostgresCopy} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			house(b, db)
			c := cluster("c", "alpha")
			putCluster(b, db, c)
			f(b, db, c)
		})
	}
}

func BenchmarkFirstFiveThousand(b *testing.B) {
	objects := pods(5000)
	eachEngine(b, func(b *testing.B, db *DB, c inventory.Cluster) {
		var keys []inventory.Key
		for _, o := range objects {
			keys = append(keys, o.Key)
		}
		for b.Loop() {
			apply(b, db, inventory.Change{ClusterID: c.ID, Upsert: objects})
			b.StopTimer()
			apply(b, db, inventory.Change{ClusterID: c.ID, Delete: keys})
			b.StartTimer()
		}
	})
}

func BenchmarkOnePercentOfFiveThousand(b *testing.B) {
	objects := pods(5000)
	eachEngine(b, func(b *testing.B, db *DB, c inventory.Cluster) {
		apply(b, db, inventory.Change{ClusterID: c.ID, Upsert: objects})
		for round := int64(1); b.Loop(); round++ {
			if _, err := db.Inventory().Hashes(b.Context(), c.ID); err != nil {
				b.Fatal(err)
			}
			var changed []inventory.Object
			for _, o := range objects[:50] {
				changed = append(changed, pod(o.Namespace, o.Name, round))
			}
			apply(b, db, inventory.Change{ClusterID: c.ID, Upsert: changed})
		}
	})
}

func BenchmarkPageOfFiveThousand(b *testing.B) {
	objects := pods(5000)
	eachEngine(b, func(b *testing.B, db *DB, c inventory.Cluster) {
		apply(b, db, inventory.Change{ClusterID: c.ID, Upsert: objects})
		for name, q := range map[string]inventory.Query{
			"default": {}, "deep": {Offset: 4900}, "restarts": {Sort: "restarts", Desc: true}, "age": {Sort: "age"},
			"text": {Text: "04321"}, "namespace": {Namespace: "ns-07"}, "none": {Text: "no such pod"},
		} {
			b.Run(name, func(b *testing.B) {
				q.ClusterID, q.Section, q.Limit = c.ID, inventory.SectionPods, 50
				for b.Loop() {
					if _, err := db.Inventory().Objects(b.Context(), q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}
