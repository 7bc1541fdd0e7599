"""Makes Parquet files with pyarrow, and the SHA-256 of their columns: make_parquet.py FOLDER ROWS"""
import pyarrow as pa, pyarrow.parquet as pq, numpy as np, sys
out=sys.argv[1]; n=int(sys.argv[2]) if len(sys.argv)>2 else 1000
r=np.random.default_rng(1)
vec=r.normal(size=(n,4)).astype(np.float32)
t=pa.table({
 "id": pa.array(np.arange(n),pa.int64()), "label": pa.array(r.integers(0,10,n),pa.int32()),
 "small": pa.array(r.integers(0,200,n),pa.uint8()), "short": pa.array(r.integers(-9,9,n),pa.int16()),
 "flag": pa.array(r.integers(0,2,n).astype(bool)), "x": pa.array(r.normal(size=n).astype(np.float32)), "y": pa.array(r.normal(size=n)),
 "half": pa.array(r.normal(size=n).astype(np.float16)),
 "vec": pa.array(list(vec), pa.list_(pa.float32())), "fixed": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(3*n),pa.int64()),3),
 "blob": pa.array([bytes([i%256]*6) for i in range(n)], pa.binary()), "fbin": pa.array([bytes([i%7]*5) for i in range(n)], pa.binary(5)),
 "text": pa.array([f"the cat {i}" for i in range(n)]),
})
for c in ("snappy","zstd","gzip","none","brotli"):
    pq.write_table(t, f"{out}/{c}.parquet", compression=c, row_group_size=20)
pq.write_table(t, f"{out}/v2.parquet", compression="zstd", row_group_size=20, data_page_version="2.0", version="2.6", use_dictionary=False)
pq.write_table(pa.table({"a":pa.array([1,None,3])}), f"{out}/nulls.parquet")
pq.write_table(pa.table({"a":pa.array([[1],[2,3]])}), f"{out}/ragged.parquet")
pq.write_table(pa.table({"a":pa.array([],pa.int32())}), f"{out}/empty.parquet")
pq.write_table(pa.table({"a":pa.array([[[1]]])}), f"{out}/nested.parquet")
pq.write_table(pa.table({"image":pa.array([{"bytes":b"abc","path":"x"}]),"label":[1]}), f"{out}/struct.parquet")
import hashlib
for k in t.column_names:
    c=t.column(k)
    if k in("vec",): b=vec.tobytes()
    elif k=="fixed": b=np.arange(3*n).astype('<i8').tobytes()
    elif k in("blob","fbin","text"): b=b"".join(x if isinstance(x,bytes) else x.encode() for x in c.to_pylist())
    elif k=="flag": b=np.array(c.to_pylist(),np.uint8).tobytes()
    else: b=c.to_numpy().tobytes()
    print(k, hashlib.sha256(b).hexdigest(), file=open(out + "/expected.txt", "a"))
for name in "ab":
    pq.write_table(pa.table({name:pa.array([1])}), f"{out}/only-{name}.parquet")
ints=[(f"{k}{b}", pa.array([0, -1 if k=="i" else 2**b-1], getattr(pa, f"{'u' if k=='u' else ''}int{b}")())) for k in "iu" for b in (8,16,32,64)]
pq.write_table(pa.table(dict(ints)), f"{out}/integers.parquet")
states=pa.FixedSizeListArray.from_arrays(pa.array([1,2,3,4],pa.int8()),2)
pq.write_table(pa.table({"camera.state":states,"s":pa.array([{"x":5},{"x":6}],pa.struct([("x",pa.int8())])),"x":pa.array([7,8],pa.int8()),"text":["a","b"]}), f"{out}/names.parquet")
halves=np.arange(12).astype(np.float16)
pq.write_table(pa.table({"list":pa.array(list(halves.reshape(4,3)),pa.list_(pa.float16())),"fixed":pa.FixedSizeListArray.from_arrays(pa.array(halves),3)}), f"{out}/halves.parquet")
pq.write_table(pa.table({"a":pa.array([[{"x":1}]])}), f"{out}/structs.parquet")
pq.write_table(pa.Table.from_arrays([pa.array([1]),pa.array([2])],names=["a","a"]), f"{out}/twice.parquet")
