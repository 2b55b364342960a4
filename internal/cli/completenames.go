package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

// completionNames is how many names are told at most.
const completionNames = 200

// completionTime is how long a server may take to tell names: somebody waits to
// type on.
func completionTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("TWINSRV_COMPLETION_TIMEOUT")); err == nil {
		return d
	}
	return time.Second
}

// ask asks the server that the command line, or the environment, names. What goes
// wrong is left out: somebody is about to type a name.
func (p *place) ask(ctx context.Context, what func(ctx context.Context, s *Session) []candidate) []candidate {
	f := ServerFlags{Server: p.value("server"), TokenFile: p.value("token-file")}
	s, err := f.connect(client.Config{Repeats: -1})
	if err != nil {
		return nil
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, completionTime())
	defer cancel()
	return what(ctx, s)
}

// value is that of a flag: of the command line, the environment, or its default.
func (p *place) value(name string) string {
	if v, is := p.given[name]; is {
		return v
	}
	f := p.long("--" + name)
	if f == nil {
		return ""
	}
	for _, e := range f.Envs {
		if v := os.Getenv(e); v != "" {
			return v
		}
	}
	return f.Default
}

func (p *place) pods(ctx context.Context) []candidate {
	return p.ask(ctx, func(ctx context.Context, s *Session) (all []candidate) {
		for pod, err := range s.Pods(ctx) {
			if err != nil || len(all) == completionNames {
				return all
			}
			all = append(all, candidate{pod.Name, pod.Type})
		}
		return all
	})
}

// names are those of the entities of the pod that is the command's first
// argument.
func (p *place) names(ctx context.Context) []candidate {
	if len(p.args) == 0 {
		return nil
	}
	return p.ask(ctx, func(ctx context.Context, s *Session) (all []candidate) {
		o := client.QueryOptions{Pods: p.args[:1], Prefix: p.current, Select: []string{"name"}, Page: completionNames}
		for t, err := range client.Query[json.RawMessage](ctx, s.Client, o) {
			if err != nil || len(all) == completionNames {
				return all
			}
			if !strings.HasPrefix(t.Name, "-") { // it would be taken for a flag
				all = append(all, candidate{text: t.Name})
			}
		}
		return all
	})
}

// messages are those that the pod's entities understand.
func (p *place) messages(ctx context.Context) []candidate {
	if len(p.args) == 0 {
		return nil
	}
	return p.ask(ctx, func(ctx context.Context, s *Session) (all []candidate) {
		pod, err := s.Pod(ctx, p.args[0])
		if err != nil {
			return nil
		}
		for _, m := range pod.Messages {
			about := m.Kind
			if m.Creates {
				about = fmt.Sprintf("%s, creates", m.Kind)
			}
			all = append(all, candidate{m.Name, about})
		}
		return all
	})
}
