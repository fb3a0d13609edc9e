package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"prxm.uz/proxima/internal/clock/clocktest"
	"prxm.uz/proxima/internal/console/web/internal/fake"
)

func named(name string) url.Values { return url.Values{"name": {name}} }

func TestClients(t *testing.T) {
	s := full(t)
	wantText(t, s.get("/clients", http.StatusOK).byID(t, "client-cl_ostra"), "Ostra Retail")
	a := s.get("/clients?q=KIVU", http.StatusOK)
	wantText(t, a.page, "1 client", "Kivu Telecom")
	if strings.Contains(textOf(a.byID(t, "list")), "Ostra") {
		t.Error("the filter hides nothing")
	}
	wantText(t, s.get("/clients?q=zzz", http.StatusOK).page, "No client matches")
	if got := s.get("/clients?page=9", http.StatusSeeOther).Header.Get("Location"); got != "/clients" {
		t.Errorf("a page after the last leads to %s", got)
	}
	wantText(t, serve(t, fake.Empty(start), clocktest.New(start()), fake.Admin).get("/clients", http.StatusOK).page, "No clients", "Add client")

	wantText(t, s.post("/clients/add", named(""), http.StatusUnprocessableEntity).byID(t, "name-error"), "needs a name")
	if got := s.post("/clients/add", named("Norda"), http.StatusSeeOther).Header.Get("Location"); got != "/clients/cl_4?did=created" {
		t.Errorf("sent to %s", got)
	}
	wantText(t, s.get("/clients/cl_4?did=created", http.StatusOK).page, "The client is created", "No environment")
}

func TestClient(t *testing.T) {
	s := full(t)
	a := s.get("/clients/cl_ostra", http.StatusOK)
	wantText(t, a.byID(t, "environment-en_ostra_prod"), "prod", "2", "Rename…", "Delete…")
	for _, href := range []string{"/clusters?client=cl_ostra", "/agents?client=cl_ostra", "/clusters?client=cl_ostra&amp;environment=en_ostra_prod"} {
		if !strings.Contains(a.text, `href="`+href+`"`) {
			t.Errorf("nothing leads to %s", href)
		}
	}
	a = s.post("/clients/cl_ostra/rename", named("kivu telecom"), http.StatusConflict)
	wantText(t, a.byID(t, "name-error"), "already one named")
	if attr(a.byID(t, "name"), "value") != "kivu telecom" {
		t.Error("what was typed is lost")
	}
	s.post("/clients/cl_ostra/rename", named("Ostra"), http.StatusSeeOther)
	wantText(t, s.post("/clients/cl_ostra/environments", named(""), http.StatusUnprocessableEntity).byID(t, "environment-error"), "needs a name")
	s.post("/clients/cl_ostra/environments", named("dev"), http.StatusSeeOther)
	wantText(t, s.get("/clients/cl_ostra?did=added", http.StatusOK).page, "Ostra", "3 environments", "The environment is added", "dev")

	reader := serve(t, fake.Full(start), clocktest.New(start()), fake.Reader)
	reader.get("/clients/cl_ostra", http.StatusForbidden)
}

func TestEnvironment(t *testing.T) {
	s := full(t)
	const staging = "/clients/cl_ostra/environments/en_ostra_staging"
	wantText(t, s.get(staging, http.StatusOK).page, "Rename staging")
	wantText(t, s.post(staging, named("Prod"), http.StatusConflict).byID(t, "name-error"), "already one named")
	s.post(staging, named("stage"), http.StatusSeeOther)
	s.get("/clients/cl_kivu/environments/en_ostra_staging", http.StatusNotFound)
	s.get("/clients/cl_ostra/environments/en_none", http.StatusNotFound)

	a := s.get("/clients/cl_ostra/environments/en_ostra_prod/delete", http.StatusOK)
	wantText(t, a.page, "prod still holds 2 clusters and 8 agents.", "Remove the clusters and delete the agents first.")
	if strings.Contains(a.text, "danger-solid") {
		t.Error("a button offers what will be refused")
	}
	a = s.post("/clients/cl_ostra/environments/en_ostra_prod/delete", nil, http.StatusConflict)
	wantText(t, a.byID(t, "error-summary"), "Not deleted", "still holds 2 clusters and 8 agents")
	wantText(t, s.get(staging+"/delete", http.StatusOK).page, "Delete the environment stage of Ostra Retail?", "1 past attempt and 2 dead install tokens", "2 roles that people hold", "audit log")
	s.post(staging+"/delete", nil, http.StatusSeeOther)
	wantText(t, s.get("/clients/cl_ostra?did=environment-deleted", http.StatusOK).page, "The environment is deleted", "1 environment")
}

func TestDeleteAClient(t *testing.T) {
	s := full(t)
	wantText(t, s.get("/clients/cl_kivu/delete", http.StatusOK).page, "still holds 2 environments (prod and staging).", "Delete the environments first.")
	s.post("/clients/cl_kivu/delete", nil, http.StatusConflict)
	s.post("/clients/add", named("Norda"), http.StatusSeeOther)
	wantText(t, s.get("/clients/cl_4/delete", http.StatusOK).page, "Delete Norda?", "1 role that somebody holds on exactly this client is taken away.")
	s.post("/clients/cl_4/delete", nil, http.StatusSeeOther)
	wantText(t, s.get("/clients?did=deleted", http.StatusOK).page, "The client is deleted.")
	s.get("/clients/cl_4", http.StatusNotFound)
}
