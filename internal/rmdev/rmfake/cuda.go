//go:build linux

package rmfake

import "tsgtop/internal/rm"

// TSG describes a TSG that CUDA made.
type TSG struct {
	Handle    uint32
	Device    uint32
	Runlist   uint32
	Number    uint32
	Unique    uint32
	Timeslice uint64
	Channels  []Channel
}

// Channel is one channel of it.
type Channel struct {
	Handle  uint32
	Context uint32
	ChID    uint32
}

// CUDA makes under the client what libcuda makes for one context on a GPU:
// device, subdevice, some memory, the compute TSG with 8 channels and a
// timeslice of 2048 us, and three copy TSGs with 4 channels each. Handles go on
// from base, which is 0x5c000000 for libcuda.
func (c *Client) CUDA(g *GPU, base uint32) []TSG {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	n := base
	next := func() uint32 { n++; return n }
	dev := c.add(next(), c.Handle, rm.ClassDevice, g)
	c.add(next(), dev.handle, rm.ClassSubdevice, g)
	for range 0x11 { // memory and the like
		c.add(next(), dev.handle, 0x3e, g)
	}
	var out []TSG
	for i, runlist := range []uint32{0, 1, 3, 10} {
		t := c.tsg(next(), dev, runlist)
		channels := 4
		if i == 0 {
			t.timeslice, channels = 2048, 8
			for range 5 {
				c.add(next(), t.handle, rm.ClassContextShare, g)
			}
		}
		made := TSG{Handle: t.handle, Device: dev.handle, Runlist: runlist, Number: t.number, Unique: t.unique, Timeslice: t.timeslice}
		for range channels {
			next() // its memory, freed again
			ch := c.channel(next(), t)
			class := uint32(0xc8b5)
			if i == 0 {
				class = 0xcbc0
			}
			c.add(next(), ch.handle, class, g)
			made.Channels = append(made.Channels, Channel{ch.handle, ch.context, ch.chid})
		}
		out = append(out, made)
	}
	return out
}

func (c *Client) tsg(handle uint32, dev *object, runlist uint32) *object {
	g := dev.gpu
	t := c.add(handle, dev.handle, rm.ClassTSG, g)
	t.runlist, t.number, t.unique = runlist, g.nextTSG[runlist], c.d.nextUID
	g.nextTSG[runlist]++
	c.d.nextUID++
	return t
}

func (c *Client) channel(handle uint32, t *object) *object {
	ch := c.add(handle, t.handle, rm.ClassChannelHopper, t.gpu)
	ch.runlist, ch.chid, ch.context = t.runlist, t.gpu.nextChID[t.runlist], c.d.nextCtx
	t.gpu.nextChID[t.runlist]++
	c.d.nextCtx++
	return ch
}

// AddTSG makes one more TSG with n channels under a device of the client.
func (c *Client) AddTSG(handle, device, runlist uint32, n int) TSG {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	dev := c.objects[device]
	t := c.tsg(handle, dev, runlist)
	made := TSG{Handle: handle, Device: device, Runlist: runlist, Number: t.number, Unique: t.unique, Timeslice: t.timeslice}
	for i := range n {
		ch := c.channel(handle+uint32(i)+1, t)
		made.Channels = append(made.Channels, Channel{ch.handle, ch.context, ch.chid})
	}
	return made
}

// Add makes an object of any class.
func (c *Client) Add(handle, parent, class uint32, g *GPU) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.add(handle, parent, class, g)
}

// Free frees an object and what is under it.
func (c *Client) Free(handle uint32) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.free(handle)
}

func (c *Client) free(handle uint32) {
	for _, o := range c.objects {
		if o.parent == handle && o.handle != handle {
			c.free(o.handle)
		}
	}
	if o := c.objects[handle]; o != nil {
		c.d.unbind(o)
	}
	delete(c.objects, handle)
}
