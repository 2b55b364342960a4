package pgtest

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// Fault is what a Proxy does to the next commit that passes through it: the next
// execution of a statement that was prepared under the name "commit".
type Fault int

const (
	// None forwards everything.
	None Fault = iota
	// DropCommit forwards all before the commit, and cuts both sides then.
	DropCommit
	// DropAnswer forwards the commit, waits for the server to answer, and cuts
	// both sides without having forwarded the answer.
	DropAnswer
	// DelayCommit cuts the client before the commit is forwarded, and keeps the
	// server's side open. Release forwards the commit then.
	DelayCommit
	// HoldAnswer forwards the commit and never its answer.
	HoldAnswer
)

// Proxy forwards connections to a server, and spoils them when it is told to.
// Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	to       string
	wg       sync.WaitGroup

	mu      sync.Mutex
	conns   map[*proxied]struct{}
	refuse  bool
	fault   Fault
	spare   int           // commits that pass before
	hit     chan struct{} // closed when the fault has struck
	delayed []func()
	closed  bool
}

// proxied is one connection of a client and the one to the server for it.
type proxied struct {
	p              *Proxy
	client, server net.Conn
	gone           chan struct{} // closed with both

	mu     sync.Mutex
	silent bool // answers are swallowed
	cut    bool // the first answer ends it
}

// NewProxy starts a proxy in front of the server at the address.
func NewProxy(to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, to: to, conns: map[*proxied]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Address is where the proxy listens: host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Close cuts all connections and ends the proxy.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.wg.Wait()
	return err
}

// Cut ends every connection on both sides.
func (p *Proxy) Cut() {
	for _, c := range p.all() {
		c.close()
	}
}

// CutClients ends every connection on the client's side alone: the server does
// not notice.
func (p *Proxy) CutClients() {
	for _, c := range p.all() {
		c.mu.Lock()
		c.silent = true
		c.mu.Unlock()
		_ = c.client.Close()
	}
}

func (p *Proxy) all() []*proxied {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*proxied, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}

// Refuse decides whether new connections are ended at once.
func (p *Proxy) Refuse(yes bool) {
	p.mu.Lock()
	p.refuse = yes
	p.mu.Unlock()
}

// Strike sets the fault of the next commit. The channel is closed when it has
// struck.
func (p *Proxy) Strike(f Fault) <-chan struct{} { return p.StrikeAfter(0, f) }

// StrikeAfter is Strike for the commit behind the next so many.
func (p *Proxy) StrikeAfter(commits int, f Fault) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.spare, p.hit = f, commits, make(chan struct{})
	return p.hit
}

// Release forwards the commits that were delayed, and returns when the server
// has answered each, or has ended its connection.
func (p *Proxy) Release() {
	p.mu.Lock()
	delayed := p.delayed
	p.delayed = nil
	p.mu.Unlock()
	for _, forward := range delayed {
		forward()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse || p.closed
		p.mu.Unlock()
		if refuse {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		c := &proxied{p: p, client: client, server: server, gone: make(chan struct{})}
		p.mu.Lock()
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.wg.Go(c.toServer)
		p.wg.Go(c.toClient)
	}
}

func (c *proxied) close() {
	_ = c.client.Close()
	_ = c.server.Close()
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if _, there := c.p.conns[c]; there {
		delete(c.p.conns, c)
		close(c.gone)
	}
}

func (c *proxied) toClient() {
	b := make([]byte, 64<<10)
	for {
		n, err := c.server.Read(b)
		c.mu.Lock()
		silent, cut := c.silent, c.cut
		c.mu.Unlock()
		if cut && n > 0 || err != nil {
			c.close()
			return
		}
		if silent {
			continue
		}
		if _, err := c.client.Write(b[:n]); err != nil {
			c.close()
			return
		}
	}
}

// toServer forwards the client's messages one by one: a type (but for the very
// first), a length, and the rest.
func (c *proxied) toServer() {
	var m []byte
	for first := true; ; first = false {
		head := 5
		if first {
			head = 4
		}
		m = append(m[:0], make([]byte, head)...)
		if _, err := io.ReadFull(c.client, m); err != nil {
			c.clientGone()
			return
		}
		n := int(binary.BigEndian.Uint32(m[head-4:])) - 4
		m = append(m, make([]byte, n)...)
		if _, err := io.ReadFull(c.client, m[head:]); err != nil {
			c.clientGone()
			return
		}
		if !first && bindsCommit(m) && !c.commit(m) {
			return
		}
		if _, err := c.server.Write(m); err != nil {
			c.close()
			return
		}
	}
}

// clientGone ends the server's side too, unless somebody wants it to live on.
func (c *proxied) clientGone() {
	c.mu.Lock()
	keep := c.silent
	c.mu.Unlock()
	if !keep {
		c.close()
	}
}

// bindsCommit says whether a message binds the statement "commit" (to the
// unnamed portal).
func bindsCommit(m []byte) bool {
	return m[0] == 'B' && bytes.HasPrefix(m[5:], []byte("\x00commit\x00"))
}

// commit does what is set for the next commit; m is its first message. It is
// false when nothing more is to be forwarded.
func (c *proxied) commit(m []byte) bool {
	p := c.p
	p.mu.Lock()
	f, hit := p.fault, p.hit
	if f != None && p.spare > 0 {
		p.spare--
		f = None
	} else {
		p.fault = None
	}
	p.mu.Unlock()
	if f == None {
		return true
	}
	defer close(hit)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f {
	case DropAnswer:
		c.cut = true
		return true
	case HoldAnswer:
		c.silent = true
		return true
	case DelayCommit:
		c.silent = true
		rest := append(bytes.Clone(m), c.untilSync()...)
		_ = c.client.Close()
		p.mu.Lock()
		p.delayed = append(p.delayed, func() { c.finish(rest) })
		p.mu.Unlock()
	default:
		c.close()
	}
	return false
}

// untilSync reads on to the end of the client's batch.
func (c *proxied) untilSync() (all []byte) {
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(c.client, head); err != nil {
			return all
		}
		rest := make([]byte, int(binary.BigEndian.Uint32(head[1:]))-4)
		if _, err := io.ReadFull(c.client, rest); err != nil {
			return all
		}
		all = append(append(all, head...), rest...)
		if head[0] == 'S' {
			return all
		}
	}
}

// finish sends the delayed rest and waits for the server to have done with the
// connection: a Terminate follows.
func (c *proxied) finish(rest []byte) {
	if _, err := c.server.Write(append(rest, 'X', 0, 0, 0, 4)); err != nil {
		c.close()
	}
	<-c.gone
}
