package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is where the checkout begins, seen from here.
const root = "../.."

// dashboard is what is read of the dashboard's JSON.
type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	GridPos struct{ H, W, X, Y int } `json:"gridPos"`
	Targets []target                 `json:"targets"`
}

type target struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "grafana", "redlatch.json"))
	require.NoError(t, err)
	d := &dashboard{}
	require.NoError(t, json.Unmarshal(text, d))
	require.Greater(t, len(d.Panels), 20, "the panels were not found: the check itself is broken")
	return d
}

// filled returns the expression with what Grafana puts in place of its variables.
func filled(expr, rateInterval, span string) string {
	return strings.NewReplacer("$__rate_interval", rateInterval, "$__range", span, "$job", ".*", "$exporter", ".*").Replace(expr)
}

// A dashboard that is imported asks its reader for the Prometheus, and nothing else.
func TestTheDashboardNamesNoDatasourceOfItsOwn(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	require.Equal(t, variable{Name: "datasource", Type: "datasource"}, d.Templating.List[0])
	ids, titles := map[int]bool{}, map[string]bool{}
	for i := range d.Panels {
		p := &d.Panels[i]
		require.False(t, ids[p.ID] || titles[p.Title], "%d %s is there twice", p.ID, p.Title)
		ids[p.ID], titles[p.Title] = true, true
		if p.Type == "row" {
			continue
		}
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
	}
}
