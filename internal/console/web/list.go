package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// list is the state of one list: everything that its address says. Links change one part of it and
// keep the rest, so that Back, bookmarks and reloads show the same rows.
type list struct {
	Path   string
	Values url.Values // without empty ones
	Sort   string     // key of the column, without the hyphen
	Desc   bool
	Page   int // from 1
	Size   int
}

// readList reads the state from the address. Sort keys that the list does not have, and pages that are
// no numbers, count as not given.
func readList(r *http.Request, size int, sorts []string) list {
	l := list{Path: r.URL.Path, Values: url.Values{}, Page: 1, Size: size}
	for name, values := range r.URL.Query() {
		if value := strings.TrimSpace(values[0]); value != "" && name != "did" {
			l.Values.Set(name, value)
		}
	}
	key, desc := strings.CutPrefix(l.Values.Get("sort"), "-")
	for _, k := range sorts {
		if k == key {
			l.Sort, l.Desc = key, desc
		}
	}
	if l.Sort == "" {
		l.Values.Del("sort")
		if len(sorts) > 0 {
			l.Sort = sorts[0]
		}
	}
	if page, err := strconv.Atoi(l.Values.Get("page")); err == nil && page > 1 && page < 1_000_000 {
		l.Page = page
	} else {
		l.Values.Del("page")
	}
	return l
}

// get is one filter's value.
func (l list) get(name string) string { return l.Values.Get(name) }

func (l list) offset() int { return (l.Page - 1) * l.Size }

// filtered tells whether any of the named filters is set.
func (l list) filtered(names ...string) bool {
	for _, n := range names {
		if l.get(n) != "" {
			return true
		}
	}
	return false
}

// with is the address with one value changed, "" removing it. Any change but that of the page goes
// back to the first page.
func (l list) with(name, value string) string {
	values := url.Values{}
	for k, v := range l.Values {
		values[k] = v
	}
	values.Del("page")
	values.Del("cursor")
	values.Set(name, value)
	if value == "" {
		values.Del(name)
	}
	if len(values) == 0 {
		return l.Path
	}
	return l.Path + "?" + values.Encode()
}

// sortBy is the address that sorts by a column, turned around where it is sorted by already.
func (l list) sortBy(key string) string {
	if key == l.Sort && !l.Desc {
		return l.with("sort", "-"+key)
	}
	return l.with("sort", key)
}

// order is the value of aria-sort for a column, or "".
func (l list) order(key string) string {
	switch {
	case key == "" || key != l.Sort:
		return ""
	case l.Desc:
		return "descending"
	default:
		return "ascending"
	}
}

// page is the address of one page of the list.
func (l list) page(n int) string {
	if n <= 1 {
		return l.with("page", "")
	}
	return l.with("page", strconv.Itoa(n))
}

// pager is the foot of a list.
type pager struct {
	list
	From, To, Total, Pages int
}

func (l list) pager(shown, total int) pager {
	p := pager{list: l, Total: total, Pages: (total + l.Size - 1) / l.Size}
	if shown > 0 {
		p.From, p.To = l.offset()+1, l.offset()+shown
	}
	return p
}

// beyond tells whether the address asks for a page after the last.
func (p pager) beyond() bool { return p.Total > 0 && p.From == 0 }

// around lists the numbers to offer: the first, the last, and those beside the current; 0 stands for
// what is left out between.
func (p pager) around() []int {
	var out []int
	for n := 1; n <= p.Pages; n++ {
		switch {
		case n == 1, n == p.Pages, n >= p.Page-1 && n <= p.Page+1:
			out = append(out, n)
		case out[len(out)-1] != 0:
			out = append(out, 0)
		}
	}
	return out
}

// swap makes a link or form replace the list alone, keep the focus, and put the address into the
// history; without script it is an ordinary link or form.
func swap(address string) templ.Attributes {
	return templ.Attributes{
		"hx-get": address, "hx-target": "#list", "hx-select": "#list", "hx-swap": "outerMorph",
		"hx-select-oob": "#live:innerHTML", "hx-push-url": "true",
	}
}

// option is one choice of a filter.
type option struct{ Value, Label string }

// same offers values under their own names.
func same(values []string) []option {
	out := make([]option, len(values))
	for i, v := range values {
		out[i] = option{v, v}
	}
	return out
}

// contains tells whether a form has an input of this name.
func contains(fields []string, field string) bool { return slices.Contains(fields, field) }
