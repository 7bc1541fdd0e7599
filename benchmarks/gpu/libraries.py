# What DJL's libraries take without Java: libraries.py LIBRARY... prints the milliseconds of each dlopen, in this order, as the JVM does
# it; those that are not there are left out; with CUDA=1, another thread opens the CUDA context meanwhile.
import ctypes, os, sys, threading, time

RTLD_LAZY = 1
start = time.perf_counter()


def millis(since):
    return (time.perf_counter() - since) * 1000


def cuda():
    begun = time.perf_counter()
    driver = ctypes.CDLL("libcuda.so.1", mode=RTLD_LAZY)
    driver.cuInit(0)
    inited = millis(begun)
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    print(f"cuInit {inited:.0f} ms, context there after {millis(begun):.0f} ms")


thread = threading.Thread(target=cuda)
if os.environ.get("CUDA"):
    thread.start()
for library in filter(os.path.exists, sys.argv[1:]):
    begun = time.perf_counter()
    ctypes.CDLL(library, mode=RTLD_LAZY)
    print(f"{os.path.basename(library)} {millis(begun):.0f} ms", end="  ")
print(f"all {millis(start):.0f} ms")
if os.environ.get("CUDA"):
    thread.join()
    print(f"libraries and context {millis(start):.0f} ms")
