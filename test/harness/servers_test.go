package harness_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"prxm.uz/proxima/test/harness"
)

func query[V any](t *testing.T, url, sql string) (v V, err error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return v, err
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	return v, conn.QueryRow(t.Context(), sql).Scan(&v)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	p := h.Postgres()
	template, err := p.NewTemplate(t.Context(), func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "CREATE TABLE thing (id INT); INSERT INTO thing VALUES (7)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second, empty := h.Copy(template), h.Copy(template), h.Database(p)
	if first == second {
		t.Errorf("two copies at %s", first)
	}
	for _, url := range []string{first, second} {
		if id, err := query[int](t, url, "SELECT id FROM thing"); err != nil || id != 7 {
			t.Errorf("the copy holds %d (%v), want 7", id, err)
		}
	}
	if _, err := query[int](t, empty, "SELECT id FROM thing"); err == nil {
		t.Error("an empty database has the template's table")
	}
	if encoding, err := query[string](t, empty, "SHOW server_encoding"); err != nil || encoding != "UTF8" {
		t.Errorf("encoding %q (%v)", encoding, err)
	}

	url, drop, err := p.NewDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := query[int](t, url, "SELECT 1"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a dropped database answers with %v", err)
	}

	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := query[int](t, first, "SELECT 1"); err == nil {
		t.Error("a killed server answers")
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id, err := query[int](t, first, "SELECT id FROM thing"); err != nil || id != 7 {
		t.Errorf("after the restart the copy holds %d (%v), want 7", id, err)
	}
}

func TestNATS(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	config := filepath.Join(t.TempDir(), "nats.conf")
	text := fmt.Sprintf("listen: %q\nwebsocket { listen: \"127.0.0.1:-1\", no_tls: true }\n", h.Port().Addr())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n := h.NATS(config)
	before := n.URL()
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := n.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.URL() != before {
		t.Errorf("after the restart at %s, before at %s", n.URL(), before)
	}
	for _, url := range []string{n.URL(), n.WebSocketURL()} {
		conn, err := nats.Connect(url)
		if err != nil {
			t.Errorf("connect to %s: %v", url, err)
			continue
		}
		if v := conn.ConnectedServerVersion(); v != server.VERSION {
			t.Errorf("version %s, want the one that the product embeds, %s", v, server.VERSION)
		}
		conn.Close()
	}

	if err := os.WriteFile(config, []byte("no_such_option: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := harness.StartNATS(t.Context(), h, config); err == nil || !strings.Contains(err.Error(), "no_such_option") {
		t.Errorf("a bad configuration gives %v", err)
	}
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<title>here</title>")
	}))
	defer site.Close()
	ctx := harness.New(t).Browser()
	if err := chromedp.Do(ctx, chromedp.Navigate(site.URL)); err != nil {
		t.Fatal(err)
	}
	title, err := chromedp.Run(ctx, chromedp.Title())
	if err != nil || title != "here" {
		t.Errorf("title %q (%v)", title, err)
	}
}
