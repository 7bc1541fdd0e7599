"""Writes many torch files and a verdict beside: python gen.py OUT SEED"""
import sys, os, json, hashlib, collections, pickle, io, warnings
import torch, numpy as np
warnings.simplefilter("ignore")
out, seed = sys.argv[1], int(sys.argv[2]); os.makedirs(out, exist_ok=True)
torch.manual_seed(seed)
N={torch.float32:"F32",torch.float64:"F64",torch.float16:"F16",torch.bfloat16:"BF16",torch.int8:"I8",torch.uint8:"U8",torch.int16:"I16",torch.int32:"I32",torch.int64:"I64",torch.bool:"BOOL",torch.complex64:"C64",torch.float8_e4m3fn:"F8_E4M3",torch.float8_e5m2:"F8_E5M2",torch.uint16:"U16",torch.uint32:"U32",torch.uint64:"U64",torch.float8_e4m3fnuz:"F8_E4M3FNUZ",torch.float8_e5m2fnuz:"F8_E5M2FNUZ",torch.float8_e8m0fnu:"F8_E8M0"}
sha=lambda b: hashlib.sha256(b).hexdigest()
def desc(t):
    t=t.detach().contiguous()
    if t.is_conj(): t=t.resolve_conj()
    return {"dtype":N[t.dtype],"shape":list(t.shape),"sha256":sha(t.reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"")}
def walk(v,at=()):
    if isinstance(v,torch.Tensor): return {".".join(map(str,at)):desc(v)}
    r={}
    for k,x in (v.items() if isinstance(v,dict) else enumerate(v) if isinstance(v,(list,tuple)) else ()): r.update(walk(x,at+(k,)))
    return r
def rnd(dt,*s):
    n=int(np.prod(s)) if s else 1
    raw=torch.randint(0,2 if dt==torch.bool else 256,(n*torch.empty(0,dtype=dt).element_size(),),dtype=torch.uint8)
    return raw.view(dt).reshape(s)
V={}
def pt(name,v,**how):
    torch.save(v,f"{out}/{name}",**how); 
    try: V[name]={"valid":True,"tensors":walk(v)}
    except KeyError as e: V[name]={"valid":False,"why":str(e)}
def bad(name,v,why,**how):
    torch.save(v,f"{out}/{name}",**how); V[name]={"valid":False,"why":why}
base=torch.randn(6,7,8)
views={"base":base,"t":base.permute(2,0,1),"s":base[1:5:2,::3,2],"e":base[:1,:1].expand(5,4,8),"sc":base[1,2,3],"empty":base[:,:0],"neg":base.flip(0),"diag":torch.diagonal(base[0]),"unf":torch.arange(10.).unfold(0,3,1),"one":base[:, :1, :1]}
lin=torch.nn.Sequential(torch.nn.Linear(13,17),torch.nn.BatchNorm1d(17),torch.nn.Conv2d(3,4,3).to(memory_format=torch.channels_last))
p=torch.nn.Parameter(torch.randn(5,4))
opt=torch.optim.SGD(lin.parameters(),lr=.1,momentum=.9)
for z in (True,False):
  f="zip" if z else "legacy"
  for proto in (1,2,3,4,5):
    kw=dict(pickle_protocol=proto,_use_new_zipfile_serialization=z)
    pt(f"views-{f}-{proto}.pt",views,**kw)
    pt(f"model-{f}-{proto}.bin",lin.state_dict(),**kw)
    pt(f"tied-{f}-{proto}.pth",{"a":p,"b":{"c":[p,(p.data,)]},"d":p.t()},**kw)
    pt(f"dtypes-{f}-{proto}.pt",{str(t)[6:]:rnd(t,3,5,2) for t in N},**kw)
    pt(f"mixed-{f}-{proto}.pt",{"o":opt.state_dict(),"x":torch.Size([1,2]),"dev":torch.device("cpu"),"dt":torch.float16,"set":{1,2},"cx":1j,"b":b"bytes","ba":bytearray(b"xy"),"big":1<<63,"neg":-(1<<70),"f":1e300,"u":"ü€😀","n":None,3:{True:torch.ones(3),None:torch.ones(2)},"cnt":collections.Counter("aab"),"st":torch.ones(3).untyped_storage(),"long":"x"*(70000 if len(sys.argv)>3 else 300),"ints":[0,255,256,65535,65536,-1,2**31-1,-2**31,2**31],"od":collections.OrderedDict(a=torch.zeros(2)),"dd":[[torch.ones(1)]]},**kw)
  pt(f"many-{f}.pt",[torch.full((i%5,),float(i)) for i in range(3000)],_use_new_zipfile_serialization=z)
  pt(f"root-{f}.pt",p,_use_new_zipfile_serialization=z)
  pt(f"list-{f}.pt",[torch.ones(2,3),(torch.zeros(()),)],_use_new_zipfile_serialization=z)
  q=torch.randn(3); q.note="attr"
  pt(f"attr-{f}.pt",{"q":q},_use_new_zipfile_serialization=z)
  pt(f"buffer-{f}.pt",{"q":torch.nn.Buffer(torch.randn(3))},_use_new_zipfile_serialization=z)
  pp=torch.nn.Parameter(torch.randn(2)); pp.extra=5
  pt(f"paramstate-{f}.pt",{"q":pp},_use_new_zipfile_serialization=z)
  bad(f"conj-{f}.pt",{"c":torch.randn(3,dtype=torch.complex64).conj()},"lazy",_use_new_zipfile_serialization=z)
  bad(f"negbit-{f}.pt",{"c":torch.randn(3,dtype=torch.complex64).conj().imag},"lazy",_use_new_zipfile_serialization=z)
  bad(f"sparse-{f}.pt",{"s":torch.eye(3).to_sparse()},"sparse",_use_new_zipfile_serialization=z)
  bad(f"csr-{f}.pt",{"s":torch.eye(3).to_sparse_csr()},"sparse",_use_new_zipfile_serialization=z)
  bad(f"quant-{f}.pt",{"s":torch.quantize_per_tensor(torch.ones(3),.1,0,torch.qint8)},"quantised",_use_new_zipfile_serialization=z)
  bad(f"meta-{f}.pt",{"s":torch.empty(3,device="meta")},"meta",_use_new_zipfile_serialization=z)
  bad(f"c128-{f}.pt",{"s":torch.ones(3,dtype=torch.complex128)},"dtype",_use_new_zipfile_serialization=z)
  bad(f"module-{f}.pt",lin,"module",_use_new_zipfile_serialization=z)
  bad(f"numpy-{f}.pt",{"a":np.ones(3)},"numpy",_use_new_zipfile_serialization=z)
torch.serialization.set_crc32_options(False); pt("nocrc.pt",views); torch.serialization.set_crc32_options(True)
ts=torch.jit.script(torch.nn.Linear(2,3)); ts.save(f"{out}/script.pt"); V["script.pt"]={"valid":False,"why":"TorchScript"}
with open(f"{out}/plain.pkl","wb") as f: pickle.dump({"a":1},f)
V["plain.pkl"]={"valid":False,"why":"pickle"}
os.makedirs(f"{out}/sharded",exist_ok=True)
sd=lin.state_dict(); ks=list(sd); h=len(ks)//2
torch.save({k:sd[k] for k in ks[:h]},f"{out}/sharded/pytorch_model-00001-of-00002.bin"); torch.save({k:sd[k] for k in ks[h:]},f"{out}/sharded/pytorch_model-00002-of-00002.bin")
json.dump({"metadata":{"total_size":1},"weight_map":{k:f"pytorch_model-0000{1 if i<h else 2}-of-00002.bin" for i,k in enumerate(ks)}},open(f"{out}/sharded/pytorch_model.bin.index.json","w"))
V["sharded"]={"valid":True,"tensors":walk(sd)}; V["sharded/pytorch_model.bin.index.json"]=V["sharded"]
json.dump(V,open(f"{out}/expected.json","w"),indent=1); print(len(V))
