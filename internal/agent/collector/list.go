package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"prxm.uz/proxima/internal/agent/kubeapi"
	"prxm.uz/proxima/internal/clock"
	"prxm.uz/proxima/internal/wire"
)

const (
	// pageSize keeps what one answer decodes into near a few MB.
	pageSize = 200
	// attempts bounds how often one list is begun anew within a sync.
	attempts = 3
	// passing reasons wait this long before the list is begun anew, doubled each time.
	retryBase, retryMost = 500 * time.Millisecond, 5 * time.Second
	// unreadAfter is how many failed syncs in a row make a kind count as unread.
	unreadAfter = 3
)

// pager reads one page and hands its objects to the collector. It returns the token of the next page.
type pager func(ctx context.Context, opts metav1.ListOptions) (next string, err error)

// list reads a kind page by page, without a resource version: consistent, not from a stale cache. A
// failure in mid-list begins the list anew, so what the first pages gave must be forgotten by reset; a
// short list would look like mass deletion to console (net-01).
func (c *Collector) list(ctx context.Context, reset func(), page pager) error {
	for attempt := 1; ; attempt++ {
		reset()
		err := pages(ctx, page)
		if err == nil {
			return nil
		}
		if attempt == attempts || lasting(err) != "" || ctx.Err() != nil {
			reset()
			return err
		}
		if err := c.opts.Clock.Sleep(ctx, clock.Backoff(attempt, retryBase, retryMost)); err != nil {
			return err
		}
	}
}

func pages(ctx context.Context, page pager) error {
	token := ""
	for {
		next, err := page(ctx, metav1.ListOptions{Limit: pageSize, Continue: token})
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// lasting returns why a kind will stay unread until somebody changes the cluster, "" for a reason that
// passes.
func lasting(err error) wire.UnreadReason {
	switch {
	case apierrors.IsForbidden(err):
		return wire.UnreadForbidden
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return wire.UnreadNotServed
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusNotAcceptable {
		return wire.UnreadNotServed
	}
	return ""
}

// read lists one kind and decides what a failure means. A nil error with an unread report means
// that the sync goes on without the kind.
func (c *Collector) read(ctx context.Context, kind wire.Kind, reset func(), page pager) (wire.KindReport, error) {
	report := wire.KindReport{Kind: kind}
	err := kubeapi.Explain(c.list(ctx, reset, page))
	if err == nil {
		delete(c.failures, kind)
		return report, nil
	}
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	report.Message = clean(err.Error(), maxText)
	report.Unread = lasting(err)
	switch {
	case report.Unread != "":
		delete(c.failures, kind)
	case kind == wire.KindEvents || c.failures[kind] >= unreadAfter:
		report.Unread = wire.UnreadUnavailable
	default:
		c.failures[kind]++
		return report, fmt.Errorf("list %s: %w", kind, err)
	}
	if c.warned[kind] != report.Unread {
		c.warned[kind] = report.Unread
		c.opts.Log.WarnContext(ctx, "kind cannot be read, the rest is published", "kind", string(kind), "why", string(report.Unread), "reason", report.Message, "cure", cure(kind, report.Unread))
	}
	return report, nil
}

func cure(kind wire.Kind, why wire.UnreadReason) string {
	switch why {
	case wire.UnreadForbidden:
		return "apply the ClusterRole of this version: it grants list on " + string(kind)
	case wire.UnreadNotServed:
		return "the API server does not serve this kind"
	case wire.UnreadUnavailable:
		return "look at the API server's health"
	}
	return ""
}
