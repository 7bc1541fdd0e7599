// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.Copy2D;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import jcuda.driver.CUDA_MEMCPY2D;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUmemorytype;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/// The CUDA driver API, called by JCuda, with addresses as `long` and failures as typed exceptions.
///
/// Memory and stream calls act on the context that is current on the calling thread: see [#enter].
/// Thread-safe.
public final class CudaDriver {
  /// `CU_MEMHOSTREGISTER_PORTABLE`: pins memory for every context.
  private static final int HOST_PORTABLE = 1;

  /// `CU_MEMHOSTREGISTER_DEVICEMAP`: kernels may use the memory.
  private static final int HOST_DEVICE_MAP = 2;

  /// `CU_MEMHOSTREGISTER_READ_ONLY`: devices only read the memory.
  private static final int HOST_READ_ONLY = 8;

  /// The lock that each allocation of device memory holds for reading; see [CuFile#openDriver].
  static final ReadWriteLock ALLOCATING = new ReentrantReadWriteLock();

  private CudaDriver() {}

  /// Loads and initialises libcuda, once a process.
  public static Availability<CudaDriver> load() {
    return Holder.DRIVER;
  }

  private static final class Holder {
    static final Availability<CudaDriver> DRIVER = probe();

    private static Availability<CudaDriver> probe() {
      try {
        int result = JCudaDriver.cuInit(0);
        if (result != CUresult.CUDA_SUCCESS) {
          return new Availability.Absent<>("cuInit: " + failure(result).describe());
        }
        return new Availability.Present<>(new CudaDriver());
      } catch (LinkageError e) {
        // JCuda's message has several lines; the last cause has the dynamic loader's own message.
        Throwable cause = e;
        while (cause.getCause() != null) {
          cause = cause.getCause();
        }
        return new Availability.Absent<>(
            "no CUDA driver: " + inShort(String.valueOf(cause.getMessage())));
      }
    }

    private static String inShort(String words) {
      if (words.contains("libcuda.so")) {
        return "libcuda.so.1 not found";
      }
      // This message is about JCuda's own library, which JCuda looks for in its jar, too.
      return words.startsWith("Error while loading native library")
          ? "the jar org.jcuda:jcuda-natives is missing, or is for another system"
          : words.lines().findFirst().orElse(words);
    }
  }

  /// The version of the CUDA API that the driver serves, such as 13000 for 13.0.
  public int driverVersion() {
    int[] version = new int[1];
    check(JCudaDriver.cuDriverGetVersion(version), "cuDriverGetVersion", "driver");
    return version[0];
  }

  public int deviceCount() {
    int[] count = new int[1];
    check(JCudaDriver.cuDeviceGetCount(count), "cuDeviceGetCount", "driver");
    return count[0];
  }

  /// The marketing name of a device.
  public String deviceName(int ordinal) {
    byte[] name = new byte[256];
    check(
        JCudaDriver.cuDeviceGetName(name, name.length, device(ordinal)),
        "cuDeviceGetName",
        subject(ordinal));
    int end = 0;
    while (end < name.length && name[end] != 0) {
      end++;
    }
    return new String(name, 0, end, StandardCharsets.UTF_8);
  }

  /// A device's PCI address as sysfs writes it: `0000:3b:00.0`.
  public String pciAddress(int ordinal) {
    CUdevice device = device(ordinal);
    return String.format(
        Locale.ROOT,
        "%04x:%02x:%02x.0",
        attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device, ordinal),
        attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device, ordinal),
        attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device, ordinal));
  }

  private static int attribute(int attribute, CUdevice device, int ordinal) {
    int[] value = new int[1];
    check(
        JCudaDriver.cuDeviceGetAttribute(value, attribute, device),
        "cuDeviceGetAttribute",
        subject(ordinal));
    return value[0];
  }

  /// Retains the primary context of a device, which libtorch and the CUDA runtime share.
  public Context retainPrimaryContext(int ordinal) {
    Context context = new Context();
    check(
        JCudaDriver.cuDevicePrimaryCtxRetain(context.handle, device(ordinal)),
        "cuDevicePrimaryCtxRetain",
        subject(ordinal));
    return context;
  }

  /// Receives the context that `cuCtxPopCurrent` removes; nothing reads it. It is made once, since
  /// leaving a context must not need heap.
  private static final CUcontext POPPED = new CUcontext();

  /// Makes `context` current on this thread until the scope closes; closing restores the context
  /// that was current before.
  public Entered enter(Context context) {
    return entered(context);
  }

  static Entered entered(Context context) {
    check(JCudaDriver.cuCtxPushCurrent(context.handle), "cuCtxPushCurrent", "context");
    return () -> check(JCudaDriver.cuCtxPopCurrent(POPPED), "cuCtxPopCurrent", "context");
  }

  /// The primary context of a device.
  public static final class Context {
    private final CUcontext handle = new CUcontext();

    private Context() {}
  }

  /// A stream: a queue of work that a device does in order.
  public static final class Stream {
    /// The default stream of the current context, which libtorch uses by default.
    public static final Stream DEFAULT = new Stream();

    final Handle handle = new Handle();

    private Stream() {}

    /// The stream as a `cudaStream_t`, for libraries that JCuda does not call.
    long address() {
      return handle.raw();
    }

    /// JCuda shows a stream's native value only to subclasses.
    static final class Handle extends CUstream {
      long raw() {
        return getNativePointer();
      }
    }
  }

  /// An event: a point in a stream.
  public static final class Event {
    private final CUevent handle = new CUevent();
    private final boolean blockingSync;

    private Event(boolean blockingSync) {
      this.blockingSync = blockingSync;
    }

    /// Whether [#createBlockingSyncEvent] made this event.
    public boolean isBlockingSync() {
      return blockingSync;
    }
  }

  /// The scope in which a context is current on this thread.
  @FunctionalInterface
  public interface Entered extends AutoCloseable {
    @Override
    void close();
  }

  /// Lets the current context, of device `ordinal`, use the memory of another device directly, for as long as the
  /// process runs.
  ///
  /// @return why the context cannot use that memory; empty if it can
  public String reach(int ordinal, int peerOrdinal, Context peer) {
    int[] can = new int[1];
    check(
        JCudaDriver.cuDeviceCanAccessPeer(can, device(ordinal), device(peerOrdinal)),
        "cuDeviceCanAccessPeer",
        subject(ordinal));
    if (can[0] == 0) {
      return "the driver does not let "
          + subject(ordinal)
          + " reach the memory of "
          + subject(peerOrdinal);
    }
    int result = JCudaDriver.cuCtxEnablePeerAccess(peer.handle, 0);
    return result == CUresult.CUDA_SUCCESS
            || result == CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
        ? ""
        : "cuCtxEnablePeerAccess of "
            + subject(peerOrdinal)
            + " by "
            + subject(ordinal)
            + ": "
            + failure(result).describe();
  }

  /// Queues a copy to another device's memory.
  public void copyToPeer(
      long target, Context peer, long source, Context own, long bytes, Stream stream) {
    checkCopy(
        JCudaDriver.cuMemcpyPeerAsync(
            new Address(target),
            peer.handle,
            new Address(source),
            own.handle,
            bytes,
            stream.handle),
        "cuMemcpyPeerAsync",
        target,
        source,
        bytes);
  }

  /// Waits for all work queued in the current context.
  public void synchronizeContext() {
    check(JCudaDriver.cuCtxSynchronize(), "cuCtxSynchronize", "context");
  }

  /// Memory of a device. This object is made before the memory is allocated, so that freeing the
  /// memory needs no heap.
  public static final class DeviceMemory {
    private final Address handle = new Address(0);

    private DeviceMemory() {}

    public long address() {
      return handle.raw();
    }
  }

  /// Allocates memory. Waits while libcufile's driver opens or closes; see [CuFile#openDriver].
  public DeviceMemory allocateDevice(long bytes) {
    DeviceMemory memory = new DeviceMemory();
    int result;
    ALLOCATING.readLock().lock();
    try {
      result = JCudaDriver.cuMemAlloc(memory.handle, bytes);
    } finally {
      ALLOCATING.readLock().unlock();
    }
    check(result, "cuMemAlloc", bytes, " bytes");
    return memory;
  }

  public void freeDevice(DeviceMemory memory) {
    checkAt(memory.handle.raw(), JCudaDriver.cuMemFree(memory.handle), "cuMemFree");
  }

  /// Host memory that is pinned, or is going to be. This object is made before the memory is
  /// pinned, so that unpinning it needs no heap.
  public static final class PinnedMemory {
    private final HostAddress handle;
    private final long address;
    private final long bytes;

    public PinnedMemory(long address, long bytes) {
      this.handle = new HostAddress(address);
      this.address = address;
      this.bytes = bytes;
    }
  }

  /// Pins host memory for every context. Kernels use its host address.
  public void pin(PinnedMemory memory) {
    check(
        JCudaDriver.cuMemHostRegister(memory.handle, memory.bytes, HOST_PORTABLE | HOST_DEVICE_MAP),
        "cuMemHostRegister",
        memory.bytes,
        " bytes");
  }

  /// Pins memory that may only be read, such as a mapped file, for every context. Kernels use its host address.
  public void pinReadOnly(PinnedMemory memory) {
    int flags = HOST_PORTABLE | HOST_DEVICE_MAP | HOST_READ_ONLY;
    check(
        JCudaDriver.cuMemHostRegister(memory.handle, memory.bytes, flags),
        "cuMemHostRegister",
        memory.bytes,
        " bytes, read only");
  }

  /// Whether a device supports [#pinReadOnly], and its kernels can use host addresses.
  public boolean pinsReadOnly(int ordinal) {
    CUdevice device = device(ordinal);
    return attribute(
                CUdevice_attribute.CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
                device,
                ordinal)
            != 0
        && attribute(
                CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
                device,
                ordinal)
            != 0;
  }

  /// Unpins host memory. Call this before the memory is freed.
  public void unpin(PinnedMemory memory) {
    checkAt(memory.address, JCudaDriver.cuMemHostUnregister(memory.handle), "cuMemHostUnregister");
  }

  /// Free and total memory of the current context's device, in bytes.
  public MemoryInfo memoryInfo() {
    long[] free = new long[1];
    long[] total = new long[1];
    check(JCudaDriver.cuMemGetInfo(free, total), "cuMemGetInfo", "context");
    return new MemoryInfo(free[0], total[0]);
  }

  public record MemoryInfo(long freeBytes, long totalBytes) {}

  public Stream createStream() {
    Stream stream = new Stream();
    check(
        JCudaDriver.cuStreamCreate(stream.handle, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate",
        "context");
    return stream;
  }

  public void synchronize(Stream stream) {
    check(JCudaDriver.cuStreamSynchronize(stream.handle), "cuStreamSynchronize", "stream");
  }

  /// Makes work that is queued on `stream` from now on wait for the last recording of `event`.
  /// Does nothing if `event` was never recorded. The caller does not wait.
  public void await(Stream stream, Event event) {
    check(
        JCudaDriver.cuStreamWaitEvent(stream.handle, event.handle, 0),
        "cuStreamWaitEvent",
        "stream");
  }

  public void destroy(Stream stream) {
    check(JCudaDriver.cuStreamDestroy(stream.handle), "cuStreamDestroy", "stream");
  }

  /// Creates an event without timing, for short waits: a thread that waits for it keeps a
  /// processor busy.
  public Event createEvent() {
    return createEvent(0, false);
  }

  /// Creates an event without timing, for long waits: a thread that waits for it sleeps.
  public Event createBlockingSyncEvent() {
    return createEvent(CUevent_flags.CU_EVENT_BLOCKING_SYNC, true);
  }

  private static Event createEvent(int flags, boolean blockingSync) {
    Event event = new Event(blockingSync);
    check(
        JCudaDriver.cuEventCreate(event.handle, CUevent_flags.CU_EVENT_DISABLE_TIMING | flags),
        "cuEventCreate",
        "context");
    return event;
  }

  public void record(Event event, Stream stream) {
    check(JCudaDriver.cuEventRecord(event.handle, stream.handle), "cuEventRecord", "stream");
  }

  /// Waits until the work before the event's last recording is done.
  public void synchronize(Event event) {
    check(JCudaDriver.cuEventSynchronize(event.handle), "cuEventSynchronize", "event");
  }

  /// Whether the work before the event's last recording is done.
  public boolean isDone(Event event) {
    int result = JCudaDriver.cuEventQuery(event.handle);
    if (result == CUresult.CUDA_ERROR_NOT_READY) {
      return false;
    }
    check(result, "cuEventQuery", "event");
    return true;
  }

  public void destroy(Event event) {
    check(JCudaDriver.cuEventDestroy(event.handle), "cuEventDestroy", "event");
  }

  /// Queues a copy from pinned host memory, which must not change until the copy is done.
  public void copyToDevice(long device, long host, long bytes, Stream stream) {
    checkCopy(
        JCudaDriver.cuMemcpyHtoDAsync(new Address(device), new Address(host), bytes, stream.handle),
        "cuMemcpyHtoDAsync",
        device,
        host,
        bytes);
  }

  /// Queues a copy to pinned host memory.
  public void copyToHost(long host, long device, long bytes, Stream stream) {
    checkCopy(
        JCudaDriver.cuMemcpyDtoHAsync(new Address(host), new Address(device), bytes, stream.handle),
        "cuMemcpyDtoHAsync",
        host,
        device,
        bytes);
  }

  /// Copies to host memory, pinned or not, and returns when the copy is done.
  public void copyToHost(long host, long device, long bytes) {
    checkCopy(
        JCudaDriver.cuMemcpyDtoH(new Address(host), new Address(device), bytes),
        "cuMemcpyDtoH",
        host,
        device,
        bytes);
  }

  /// Queues a copy within a device.
  public void copyOnDevice(long target, long source, long bytes, Stream stream) {
    checkCopy(
        JCudaDriver.cuMemcpyDtoDAsync(
            new Address(target), new Address(source), bytes, stream.handle),
        "cuMemcpyDtoDAsync",
        target,
        source,
        bytes);
  }

  /// The largest pitch that the driver takes in a copy of rows, in bytes.
  public static final long MAX_PITCH_BYTES = Integer.MAX_VALUE;

  /// Queues a copy of rows between addresses.
  public void copyOnDevice(Copy2D copy, Stream stream) {
    CUDA_MEMCPY2D shape = new CUDA_MEMCPY2D();
    shape.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE;
    shape.srcDevice = new Address(copy.source());
    copyRows(shape, copy, stream);
  }

  /// Queues a copy of rows from pinned host memory, which must not change until the copy is done.
  public void copyToDevice(Copy2D copy, Stream stream) {
    CUDA_MEMCPY2D shape = new CUDA_MEMCPY2D();
    shape.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_HOST;
    shape.srcHost = new HostAddress(copy.source());
    copyRows(shape, copy, stream);
  }

  /// @param shape the copy, whose source is already described
  private static void copyRows(CUDA_MEMCPY2D shape, Copy2D copy, Stream stream) {
    shape.srcPitch = copy.sourcePitch();
    shape.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE;
    shape.dstDevice = new Address(copy.target());
    shape.dstPitch = copy.targetPitch();
    shape.WidthInBytes = copy.width();
    shape.Height = copy.rows();
    check(
        JCudaDriver.cuMemcpy2DAsync(shape, stream.handle),
        "cuMemcpy2DAsync",
        copy.rows() + " rows of " + copy.width() + " bytes");
  }

  /// Queues a fill of `bytes` bytes with `value`.
  public void fill(long device, byte value, long bytes, Stream stream) {
    check(
        JCudaDriver.cuMemsetD8Async(new Address(device), value, bytes, stream.handle),
        "cuMemsetD8Async",
        bytes,
        " bytes");
  }

  /// Makes the failure of a `CUresult`, with its name and meaning.
  public static Failure.Cuda failure(int result) {
    String[] name = new String[1];
    String[] meaning = new String[1];
    boolean known =
        JCudaDriver.cuGetErrorName(result, name) == CUresult.CUDA_SUCCESS
            && JCudaDriver.cuGetErrorString(result, meaning) == CUresult.CUDA_SUCCESS;
    return known
        ? new Failure.Cuda(result, name[0], meaning[0])
        : new Failure.Cuda(result, "unknown", "a code that this driver does not name");
  }

  private static CUdevice device(int ordinal) {
    CUdevice device = new CUdevice();
    check(JCudaDriver.cuDeviceGet(device, ordinal), "cuDeviceGet", subject(ordinal));
    return device;
  }

  private static String subject(int ordinal) {
    return "cuda:" + ordinal;
  }

  static String hex(long address) {
    return "address 0x" + Long.toHexString(address);
  }

  /// Says in which allocations the bytes of a refused copy lie: the driver's code does not tell which address it refuses.
  private static void checkCopy(
      int result, String operation, long target, long source, long bytes) {
    if (result != CUresult.CUDA_SUCCESS) {
      String subject =
          bytes + " bytes from " + CudaPointers.words(source) + " to " + CudaPointers.words(target);
      check(result, operation, subject);
    }
  }

  /// Checks a result. The subject's text is made only for a failure: if a successful call needed
  /// heap for it and had none, the resource that the call has just taken would be lost.
  private static void check(int result, String operation, long amount, String unit) {
    if (result != CUresult.CUDA_SUCCESS) {
      check(result, operation, amount + unit);
    }
  }

  private static void checkAt(long address, int result, String operation) {
    if (result != CUresult.CUDA_SUCCESS) {
      check(result, operation, hex(address));
    }
  }

  static void check(int result, String operation, String subject) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw new TransferException(operation, subject, failure(result));
    }
  }

  /// A device address for JCuda, which shows its native value only to subclasses.
  static final class Address extends CUdeviceptr {
    Address(long address) {
      super(new CUdeviceptr(), address);
    }

    long raw() {
      return getNativePointer() + getByteOffset();
    }
  }

  /// A host address, for calls that distinguish it from a device address.
  static final class HostAddress extends jcuda.Pointer {
    HostAddress(long address) {
      super(address);
    }
  }
}
