package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"prxm.uz/proxima/internal/wire"
)

// leaseName is the Lease by which replicas elect a leader (B-70).
const leaseName = "proxima-cluster-agent"

// The timing of the election. A standby looks every 1 to 2.2 s (client-go adds up to 120 %), so that a
// killed leader is succeeded after 10 + 2 × 2.2 = 14.4 s at worst: within the 15 s of B-71. client-go's
// usual 15 s lease would take up to 24.
const (
	leaseDuration = 10 * time.Second
	renewDeadline = 7 * time.Second
	retryPeriod   = time.Second
)

// elect runs lead while this replica leads, until ctx ends. lead's context ends when the lease is lost;
// a new election begins only after lead has returned.
func (a *agent) elect(ctx context.Context, lead func(context.Context)) error {
	if !a.cfg.elects() {
		a.setRole(ctx, wire.RoleLeader)
		lead(ctx)
		return nil
	}
	ctx = logr.NewContextWithSlogLogger(ctx, a.log)
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: a.cfg.PodNamespace, Name: leaseName},
		Client:     a.kube.Coordination,
		LockConfig: resourcelock.ResourceLockConfig{Identity: a.cfg.PodName},
	}
	for ctx.Err() == nil {
		term := &term{}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			// Not released on cancel: client-go would do that while lead still runs. See release.
			Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, Name: leaseName,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(leading context.Context) {
					term.serve(leading, func(leading context.Context) {
						a.setRole(leading, wire.RoleLeader)
						a.log.InfoContext(leading, "leading: this replica collects")
						lead(leading)
					})
				},
				OnStoppedLeading: func() {},
				OnNewLeader: func(holder string) {
					if holder != a.cfg.PodName {
						a.log.InfoContext(ctx, "standing by; another collector holds leadership", "holder", holder)
					}
				},
			},
		})
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
		term.await()
		if ctx.Err() == nil {
			a.log.WarnContext(ctx, "the lease was lost, collecting stopped")
			a.setRole(ctx, wire.RoleStandby)
		}
	}
	a.release(context.WithoutCancel(ctx), lock)
	return nil
}

// release gives the lease up at a clean stop, so that a standby need not wait for its end.
func (a *agent) release(ctx context.Context, lock *resourcelock.LeaseLock) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != a.cfg.PodName {
		return
	}
	record.HolderIdentity, record.LeaseDurationSeconds = "", 1
	if err := lock.Update(ctx, *record); err != nil {
		a.log.InfoContext(ctx, "the lease was not released, a standby takes over when it ends", "reason", err.Error())
	}
}

// term is one time of leading. client-go starts it in a goroutine that may come late: after the
// context ended it must not begin any more.
type term struct {
	mu   sync.Mutex
	done chan struct{} // nil before it began
}

func (t *term) serve(ctx context.Context, lead func(context.Context)) {
	t.mu.Lock()
	if ctx.Err() != nil {
		t.mu.Unlock()
		return
	}
	t.done = make(chan struct{})
	t.mu.Unlock()
	defer close(t.done)
	lead(ctx)
}

// await returns when no term is running; it is called after the context of the term ended.
func (t *term) await() {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	if done != nil {
		<-done
	}
}
