package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"prxm.uz/proxima/internal/console/store/internal/dbtype"
	"prxm.uz/proxima/internal/console/store/internal/sqlgen"
)

// ErrNoSetting is what GetSetting answers for a name that was never put.
var ErrNoSetting = errors.New("no such setting")

// GetSetting reads a value that all replicas share. Secrets do not belong here.
func (db *DB) GetSetting(ctx context.Context, name string) ([]byte, error) {
	value, err := db.read.Setting(ctx, name)
	return value, sentinels{missing: ErrNoSetting}.translate(err, "setting "+name)
}

// PutSettingIfAbsent puts a value unless there is one, and returns the one that is stored: replicas
// that start together all go on with the first one's.
func (db *DB) PutSettingIfAbsent(ctx context.Context, name string, value []byte) (stored []byte, err error) {
	err = db.inTx(ctx, func(t *tx) error {
		if err := t.q.InsertSetting(ctx, sqlgen.InsertSettingParams{Name: name, Value: notNil(value)}); err != nil {
			return fmt.Errorf("put setting %s: %w", name, err)
		}
		if stored, err = t.q.Setting(ctx, name); err != nil {
			return fmt.Errorf("read setting %s: %w", name, err)
		}
		return nil
	})
	return stored, err
}

// notNil keeps an empty value from becoming NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (db *DB) lease(ctx context.Context, name, holder string, now, until time.Time) (taken bool, err error) {
	err = db.inTx(ctx, func(t *tx) error {
		n, err := t.q.TakeLease(ctx, sqlgen.TakeLeaseParams{
			Name: name, Holder: holder, HeldUntil: dbtype.At(until), NowAt: dbtype.At(now),
		})
		taken = n > 0
		if err != nil {
			return fmt.Errorf("take lease %s: %w", name, err)
		}
		return nil
	})
	return taken, err
}
