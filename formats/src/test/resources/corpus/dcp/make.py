import sys, os, json, hashlib, shutil, warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.tensor import distribute_tensor, Shard, Replicate, DTensor
from torch.distributed.device_mesh import init_device_mesh
out, seed = sys.argv[1], int(sys.argv[2])
sha=lambda b: hashlib.sha256(b).hexdigest()
N={torch.float32:"F32",torch.bfloat16:"BF16",torch.int64:"I64",torch.float16:"F16",torch.uint8:"U8",torch.float8_e4m3fn:"F8_E4M3",torch.bool:"BOOL"}
def full():
    torch.manual_seed(seed)
    return {"w0":torch.randn(10,6),"w1":torch.randn(7,9).to(torch.bfloat16),"emb":torch.randn(13,4),"cube":torch.randn(4,6,5),"scalar":torch.tensor(2.5),"count":torch.tensor(7),"empty":torch.zeros(0,3),"rep":torch.arange(5),"f8":torch.randn(6,4).to(torch.float8_e4m3fn)}
def desc(t):
    t=t.detach().contiguous(); return {"dtype":N[t.dtype],"shape":list(t.shape),"sha256":sha(t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"")}
def verdict(sd,at=""):
    r={}
    for k,v in sd.items():
        if isinstance(v,torch.Tensor): r[at+k]=desc(v)
        elif isinstance(v,dict): r.update(verdict(v,at+str(k)+"."))
    return r
def place(sd,mesh,kind):
    r={}
    for k,t in sd.items():
        if kind=="axis0": p=[Shard(0)] if t.dim() else [Replicate()]
        elif kind=="axis1": p=[Shard(1)] if t.dim()>1 else [Replicate()]
        elif kind=="grid": p=[Shard(0),Shard(1)] if t.dim()>1 else [Replicate(),Replicate()]
        elif kind=="last": p=[Shard(t.dim()-1)] if t.dim() else [Replicate()]
        elif kind=="hybrid": p=[Replicate(),Shard(0)] if t.dim() else [Replicate(),Replicate()]
        r[k]=distribute_tensor(t,mesh,p)
    return r
def run(rank,world,kind):
    os.environ.update(MASTER_ADDR="127.0.0.1",MASTER_PORT=str(29500+seed%50),RANK=str(rank),WORLD_SIZE=str(world))
    torch.set_num_threads(1)
    dist.init_process_group("gloo",rank=rank,world_size=world)
    mesh=init_device_mesh("cpu",(2,world//2) if kind in("grid","hybrid") else (world,))
    f=full(); f.pop("f8"); sd=place(f,mesh,kind); sd["epoch"]=3; sd["nested"]={"a":sd["w0"],"list":[torch.ones(2),5],"lr":1e-3}
    dcp.save(sd,checkpoint_id=f"{out}/{kind}-{world}")
    dist.destroy_process_group()
if __name__=="__main__":
    shutil.rmtree(out,ignore_errors=True); os.makedirs(out); V={}
    sd=full(); n=torch.nn.Sequential(torch.nn.Linear(4,8),torch.nn.Linear(8,2)); opt=torch.optim.AdamW(n.parameters()); n(torch.randn(3,4)).sum().backward(); opt.step()
    one={**sd,"model":n.state_dict(),"optim":opt.state_dict(),"epoch":3,"view":sd["w0"].t(),"sl":sd["w0"][2:5,1:3],"note":"text"}
    dcp.save(one,checkpoint_id=f"{out}/one",no_dist=True)
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata
    m=dcp.FileSystemReader(f"{out}/one").read_metadata(); print({k:type(v).__name__ for k,v in m.state_dict_metadata.items()})
    V["one"]={"valid":True,"tensors":verdict(one)}
    dcp.save(sd,storage_writer=dcp.FileSystemWriter(f"{out}/threads",thread_count=4),no_dist=True); V["threads"]={"valid":True,"tensors":verdict(sd)}
    for kind,world in (("axis0",2),("axis0",3),("axis1",2),("grid",4),("last",3),("hybrid",4)):
        mp.spawn(run,(world,kind),nprocs=world,join=True)
        s=full(); s.pop("f8"); s["nested"]={"a":s["w0"],"list":{"0":torch.ones(2)}}
        V[f"{kind}-{world}"]={"valid":True,"tensors":verdict(s)}
    json.dump(V,open(f"{out}/expected.json","w"),indent=1)
