package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed static
var staticFiles embed.FS

// assets are the files that pages refer to. All stand under one address that carries the hash of
// their content, so that relative addresses within style sheets hold and a browser may keep them.
type assets struct {
	files  fs.FS
	prefix string // such as /static/0123456789abcdef/
}

// loadAssets hashes the embedded files, names included.
func loadAssets() (assets, error) {
	files, err := fs.Sub(staticFiles, "static")
	if err != nil {
		return assets{}, fmt.Errorf("web: embedded files: %w", err)
	}
	sum := sha256.New()
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		fmt.Fprintf(sum, "%s %d\n", path, len(content))
		sum.Write(content)
		return err
	})
	if err != nil {
		return assets{}, fmt.Errorf("web: hash the embedded files: %w", err)
	}
	return assets{files: files, prefix: "/static/" + hex.EncodeToString(sum.Sum(nil))[:16] + "/"}, nil
}

// url is the address of one file.
func (a assets) url(name string) string { return a.prefix + name }

// serve answers for /static/{hash}/{path}. Under a hash of another build (an old page, or a replica
// of another version) it serves what it has and forbids to keep it.
func (a assets) serve(w http.ResponseWriter, r *http.Request) error {
	path := r.PathValue("path")
	if info, err := fs.Stat(a.files, path); err != nil || info.IsDir() {
		return errNoSuchPage
	}
	if strings.HasPrefix(r.URL.Path, a.prefix) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	http.ServeFileFS(w, r, a.files, path)
	return nil
}
