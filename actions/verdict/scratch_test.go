package verdict
import ("testing";"tsgtop/internal/sched";"math/rand/v2";"fmt";"time")
func TestScratch(t *testing.T){
 n:=trials(1000,100)
 ws:=map[string]world{}
 for _,sd:=range []float64{0,.05,.1,.2,.4}{ for _,k:=range []float64{0,.5,.9,.98,.995}{ ws[fmt.Sprintf("a sd%g keep%g",sd,k)]=world{sd:sd,keep:k} }}
 ws["b drift.05"]=world{sd:.02,drift:.05}; ws["b drift-.1"]=world{sd:.02,drift:-.1}; ws["b drift-.3"]=world{sd:.02,drift:-.3}
 ws["c jump.3"]=world{sd:.02,jump:.3};ws["c jump-.5"]=world{sd:.02,jump:-.5};ws["c jump-1.5"]=world{sd:.02,jump:-1.5};ws["c jump1"]=world{sd:.02,jump:1};ws["c jump-.2sd.1"]=world{sd:.1,keep:.5,jump:-.2}
 for _,f:=range []time.Duration{20e6,100e6,300e6,1e9,3e9}{ ws[fmt.Sprintf("d flips %v",f)]=world{sd:.02,flips:f}}
 ws["e burst.3"]=world{sd:.02,burst:.3};ws["e burst.6"]=world{sd:.05,burst:.6,keep:.9}
 ws["f lose.02"]=world{sd:.1,keep:.9,lose:.02}; ws["f lose.1"]=world{sd:.1,keep:.9,lose:.1}
 for _,name:=range sortedKeys(ws){ w:=ws[name]; tot:=0; line:=""
  for i,v:=range []uint64{200,1024,1843,2048,2300,4096,8192}{ 
   y,no:=0,0; r:=rand.New(rand.NewPCG(uint64(i),77)); ex:=""
   for range n { c:=w.judge(r,sched.OpTimeslice,v); if c.State=="yes" {y++; ex=c.Why+" "+c.Evidence}; if c.State=="no" {no++} }
   tot+=y; line+=fmt.Sprintf(" %d:%d/%d",v,y,no); if y>0 {t.Log(ex)}}
  y,no:=0,0;r:=rand.New(rand.NewPCG(9,77)); for range n { c:=w.judge(r,sched.OpInterleave,2); if c.State=="yes" {y++}; if c.State=="no" {no++} }; tot+=y
  line+=fmt.Sprintf(" il:%d/%d",y,no)
  t.Logf("%-20s yes/no of %d: %s  => %d",name,n,line,tot)
 }
}
func TestPower(t *testing.T){
 n:=trials(400,100)
 for _,w:=range []world{{sd:0},{sd:.02},{sd:.05},{sd:.05,keep:.5},{sd:.05,keep:.9},{sd:.1},{sd:.1,keep:.5},{sd:.1,keep:.9},{sd:.2},{sd:.2,keep:.5}}{ if w.sd==.2 && false {continue}
  for _,e:=range []struct{e float64;v uint64}{{.9,1843},{1.1,2253},{.5,950},{.8,1600},{.14,200},{2,4240}}{ w.effect=e.e
   m:=map[string]int{}; r:=rand.New(rand.NewPCG(5,77)); y:=0;var took int64;asked:=0
   for range n { c:=w.judge(r,sched.OpTimeslice,e.v); if c.State=="yes"{y++;took=max(took,c.TookNS);if *c.AsAsked{asked++}} else {m[shape(c.Why)]++} }
   t.Logf("sd%g keep%g effect %g: yes %d/%d as asked %d, longest %.2fs %v",w.sd,w.keep,e.e,y,n,asked,float64(took)/1e9,m)
  }}
}
func sortedKeys(m map[string]world) (k []string){ for x:=range m {k=append(k,x)}; for i:=range k {for j:=i;j>0&&k[j]<k[j-1];j--{k[j],k[j-1]=k[j-1],k[j]}}; return }
