package cli_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/server"
)

const (
	patience = 90 * time.Second
	tick     = 50 * time.Millisecond
)

// serves makes the test's own program a server: twinsrv with the pod gauges.
const serves = "TWINSRV_TEST_SERVES"

var update = flag.Bool("update", false, "write what the commands print into testdata")

func TestMain(m *testing.M) {
	if os.Getenv(serves) != "" {
		server.Main(gauges())
		return
	}
	flag.Parse()
	code := m.Run()
	_ = os.RemoveAll(programs)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type gauge struct {
	Total int `json:"total"`
}

type take struct {
	N int `json:"n"`
}

type (
	total struct{}
	boom  struct{}
	hang  struct{}
)

// gauges are typed entities that refuse, fail and answer.
func gauges() entity.Type[gauge] {
	return entity.Type[gauge]{
		Name: "gauges",
		Handlers: entity.Handlers[gauge]{
			"add": entity.On(func(_ *entity.Context, g *gauge, m struct {
				N int `json:"n"`
			}) error {
				g.Total += m.N
				return nil
			}),
			"take": entity.Reply(func(_ *entity.Context, g *gauge, m take) (int, error) {
				if g.Total < m.N {
					return 0, entity.Rejectf("only %d are there", g.Total)
				}
				g.Total -= m.N
				return g.Total, nil
			}),
			"total": entity.Query(func(_ *entity.Context, g *gauge, _ total) (int, error) { return g.Total, nil }),
			"hang": entity.On(func(*entity.Context, *gauge, hang) error {
				<-make(chan struct{}) // until the server is killed
				return nil
			}),
			"boom": entity.On(func(*entity.Context, *gauge, boom) error { return fmt.Errorf("on purpose") }),
		},
	}
}

// programs is the folder of what build makes.
var programs string

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "twinsrv-cli-")
	if err != nil {
		return "", err
	}
	programs = dir
	path := filepath.Join(dir, "twinsrv")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/twinsrv/twinsrv/cmd/twinsrv").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build twinsrv: %w: %s", err, out)
	}
	return path, nil
})

// program returns the path of the real program, built once for all tests.
func program(t *testing.T) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}
