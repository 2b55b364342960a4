// Command companies is twinsrv with companies that are in the news: headlines
// come in at a rate, go through a pipeline that finds companies in them and what
// they say of those, and are counted by companies and their sectors. A ranking
// tells which companies are mentioned most.
//
// The headlines are made up; nothing that they say has happened. The companies
// are those of a file, or a few that everybody knows.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/server"
)

// options is the command line.
type options struct {
	Companies string        `placeholder:"FILE" help:"Take the companies of this CSV file, by its columns Symbol, Security and GICS Sector, in place of a few well-known ones."`
	Rate      int           `default:"20" placeholder:"N" help:"Headlines in a second (${default})."`
	Headlines int           `placeholder:"N" help:"End the feed with headline N, in place of going on for ever."`
	Seed      uint64        `default:"1" placeholder:"N" help:"Other headlines for another number (${default})."`
	Digest    time.Duration `default:"1m" placeholder:"TIME" help:"How often a company that is new makes a digest; at least 1s (${default})."`
	Exit      bool          `help:"End with the feed, in place of serving on. It needs --headlines."`
	Data      string        `default:"./companies-data" env:"TWINSRV_DATA" placeholder:"DIR" help:"Folder that holds the store; made if it is missing (${default})."`
	Listen    string        `default:"${listen}" env:"TWINSRV_LISTEN" placeholder:"ADDR" help:"Address to serve on; port 0 picks a free one (${default})."`
	Insecure  bool          `help:"Allow addresses other than loopback. Without authentication whoever reaches the address may do everything."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does what signals do
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "companies: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	var o options
	parser, err := kong.New(&o, kong.Name("companies"), kong.Vars{"listen": server.DefaultListen},
		kong.Description("Companies in the news as twins: made-up headlines, found, scored and counted."))
	if err != nil {
		return err
	}
	if _, err := parser.Parse(args); err != nil {
		return err
	}
	switch {
	case o.Rate < 1 || o.Rate > 1_000_000:
		return errors.New("--rate is from 1 to 1000000")
	case o.Headlines < 0:
		return errors.New("--headlines is 0, for no end, or more")
	case o.Digest < time.Second:
		return errors.New("--digest is at least 1s")
	case o.Exit && o.Headlines == 0:
		return errors.New("--exit needs --headlines: without an end the feed goes on for ever")
	}
	f, err := o.facts()
	if err != nil {
		return err
	}
	return o.serve(ctx, slog.New(slog.NewTextHandler(log, nil)), out, f)
}

func (o options) facts() (*facts, error) {
	if o.Companies == "" {
		return sampleFacts()
	}
	return readFacts(o.Companies)
}

// serve runs the server and, beside it, the feed; then it serves on until ctx
// ends, unless it is to exit.
func (o options) serve(ctx context.Context, log *slog.Logger, out io.Writer, f *facts) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var at atomic.Pointer[desk]
	return server.Run(ctx, server.Config{
		Data: o.Data, Listen: o.Listen, Insecure: o.Insecure, Definitions: definitions(f, o.Digest, &at), Logger: log,
		Ready: func(addr net.Addr) { _, _ = fmt.Fprintf(out, "serving %s on http://%s\n", o.Data, addr) },
		Work: func(ctx context.Context, s *server.Server) error {
			if err := o.feed(ctx, out, s, f, &at); err != nil || !o.Exit {
				return err
			}
			cancel()
			return nil
		},
	})
}

// feed opens the desk of the rankings, and sends headlines through a throttle
// into the newsroom.
func (o options) feed(ctx context.Context, out io.Writer, s *server.Server, f *facts, at *atomic.Pointer[desk]) error {
	h, err := findPods(s.Pods())
	if err != nil {
		return err
	}
	names := newFinder(f)
	relay, err := open(ctx, s.System(), names, f, h, o.Rate, at)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("open the newsroom: %w", err)
	}
	name := fmt.Sprintf("%d-%08x", o.Seed, f.sum)
	through, err := came(ctx, h, name)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("find out how far the feed has come: %w", err)
	}
	_, _ = fmt.Fprintf(out, "%d companies of %s; the feed goes on behind headline %d\n", len(names.named), f.file, through)
	sum, err := newFeed(newGenerator(names, o.Seed), name, h.feeds.Ref(name), through, relay).run(ctx, o.Headlines)
	report(ctx, out, sum, o.Headlines)
	return err
}

// open starts the actors beside the entities: the newsroom, the throttle before
// it, which it returns, and the reaper of the rankings.
func open(ctx context.Context, sys *actor.System, names *finder, f *facts, h pods, perSecond int, at *atomic.Pointer[desk]) (*actor.Ref, error) {
	props, err := newsroom(names, h.companies.Ref)
	if err != nil {
		return nil, err
	}
	room, err := sys.Spawn("newsroom", props)
	if err != nil {
		return nil, err
	}
	relay, err := sys.Spawn("feed", patterns.ThrottlingRelay(patterns.RelayConfig{Rate: rate(perSecond), Queue: 2 * maxAhead, To: room}))
	if err != nil {
		return nil, err
	}
	d := &desk{}
	if d.reaper, err = sys.Spawn("reaper", patterns.Reaper(patterns.ReaperConfig{})); err != nil {
		return nil, err
	}
	sectors, err := allSectors(ctx, f, h)
	if err != nil {
		return nil, err
	}
	for _, sector := range sectors {
		d.sectors = append(d.sectors, h.sectors.Ref(sector))
	}
	at.Store(d)
	return relay, nil
}

// allSectors returns the names of a file's sectors, and of those that are there
// already: the companies of another file may have come before.
func allSectors(ctx context.Context, f *facts, h pods) ([]string, error) {
	names := slices.Clone(f.sectors)
	for o := (persist.ListOptions{}); ; {
		views, next, err := h.sectors.List(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, v := range views {
			names = append(names, v.Name)
		}
		if next == "" {
			break
		}
		o.After = next
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// came returns how far a feed has come.
func came(ctx context.Context, h pods, name string) (int, error) {
	v, err := h.feeds.Get(ctx, name)
	if errors.Is(err, entity.ErrNotFound) {
		return 0, nil
	}
	return v.State.Through, err
}
