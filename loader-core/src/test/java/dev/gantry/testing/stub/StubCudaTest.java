// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import static jcuda.driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS;
import static jcuda.driver.CUresult.CUDA_ERROR_INVALID_CONTEXT;
import static jcuda.driver.CUresult.CUDA_ERROR_INVALID_VALUE;
import static jcuda.driver.CUresult.CUDA_ERROR_NOT_READY;
import static jcuda.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY;
import static jcuda.driver.CUresult.CUDA_SUCCESS;
import static jcuda.driver.JCudaDriver.CU_MEMHOSTALLOC_PORTABLE;
import static jcuda.driver.JCudaDriver.cuCtxSetCurrent;
import static jcuda.driver.JCudaDriver.cuDeviceGet;
import static jcuda.driver.JCudaDriver.cuDevicePrimaryCtxRelease;
import static jcuda.driver.JCudaDriver.cuDevicePrimaryCtxRetain;
import static jcuda.driver.JCudaDriver.cuEventCreate;
import static jcuda.driver.JCudaDriver.cuEventDestroy;
import static jcuda.driver.JCudaDriver.cuEventQuery;
import static jcuda.driver.JCudaDriver.cuEventRecord;
import static jcuda.driver.JCudaDriver.cuEventSynchronize;
import static jcuda.driver.JCudaDriver.cuGetErrorName;
import static jcuda.driver.JCudaDriver.cuInit;
import static jcuda.driver.JCudaDriver.cuMemAlloc;
import static jcuda.driver.JCudaDriver.cuMemFree;
import static jcuda.driver.JCudaDriver.cuMemFreeHost;
import static jcuda.driver.JCudaDriver.cuMemGetInfo;
import static jcuda.driver.JCudaDriver.cuMemHostAlloc;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoHAsync;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoDAsync;
import static jcuda.driver.JCudaDriver.cuMemsetD8;
import static jcuda.driver.JCudaDriver.cuMemsetD8Async;
import static jcuda.driver.JCudaDriver.cuStreamCreate;
import static jcuda.driver.JCudaDriver.cuStreamDestroy;
import static jcuda.driver.JCudaDriver.cuStreamSynchronize;
import static jcuda.driver.JCudaDriver.cuStreamWaitEvent;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.natives.CuFile;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// The stub of libcuda detects the mistakes that it is made to detect.
@Tag("gpu-stub")
class StubCudaTest {
  private static final int LENGTH = 4096;

  private StubControls stub;
  private final CUdevice device = new CUdevice();
  private final CUdeviceptr memory = new CUdeviceptr();
  private final CUstream stream = new CUstream();
  private final Pointer pinned = new Pointer();
  private long freedWhilePending;

  private long contextsBefore;

  @BeforeEach
  void setUp() {
    assertThat(cuInit(0)).isEqualTo(CUDA_SUCCESS);
    stub = StubControls.cuda();
    stub.clear();
    contextsBefore = stub.count("contexts");
    freedWhilePending = stub.count("freed while pending");
    CUcontext context = new CUcontext();
    check(cuDeviceGet(device, 0));
    check(cuDevicePrimaryCtxRetain(context, device));
    check(cuCtxSetCurrent(context));
    check(cuMemAlloc(memory, LENGTH));
    check(cuMemHostAlloc(pinned, LENGTH, CU_MEMHOSTALLOC_PORTABLE));
    check(cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING));
  }

  @AfterEach
  void nothingIsLeft() {
    check(cuStreamDestroy(stream));
    check(cuMemFreeHost(pinned));
    check(cuMemFree(memory));
    check(cuDevicePrimaryCtxRelease(device));
    for (String figure :
        List.of("device bytes", "pinned bytes", "streams", "events", "pending operations")) {
      assertThat(stub.count(figure)).as(figure).isZero();
    }
    // The sessions of other tests keep their contexts until the process ends.
    assertThat(stub.count("contexts")).as("contexts").isEqualTo(contextsBefore);
  }

  @Test
  void aCopyHappensOnlyWhenAThreadWaitsForIt() {
    ByteBuffer host = pinned.getByteBuffer(0, LENGTH);
    check(cuMemsetD8Async(memory, (byte) 1, LENGTH, stream));
    check(cuMemcpyDtoHAsync(pinned, memory, LENGTH, stream));

    assertThat(host.get(LENGTH - 1)).isNotEqualTo((byte) 1);
    assertThat(stub.count("pending operations")).isEqualTo(2);
    check(cuStreamSynchronize(stream));
    assertThat(host.get(LENGTH - 1)).isEqualTo((byte) 1);
  }

  @Test
  void aSynchronousCopyDoesNotWaitForANonBlockingStream() {
    check(cuMemsetD8(memory, (byte) 1, LENGTH));
    check(cuMemsetD8Async(memory, (byte) 2, LENGTH, stream));
    byte[] back = new byte[1];

    check(cuMemcpyDtoH(Pointer.to(back), memory, 1));
    assertThat(back).containsExactly(1);
    check(cuStreamSynchronize(stream));
    check(cuMemcpyDtoH(Pointer.to(back), memory, 1));
    assertThat(back).containsExactly(2);
  }

  @Test
  void anEventCarriesTheOrderFromStreamToStream() {
    CUevent event = new CUevent();
    CUstream second = new CUstream();
    check(cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING));
    check(cuStreamCreate(second, CUstream_flags.CU_STREAM_NON_BLOCKING));
    check(cuMemsetD8Async(memory, (byte) 3, LENGTH, stream));
    check(cuEventRecord(event, stream));
    check(cuStreamWaitEvent(second, event, 0));
    check(cuMemcpyDtoHAsync(pinned, memory, LENGTH, second));

    assertThat(cuEventQuery(event)).isEqualTo(CUDA_ERROR_NOT_READY);
    check(cuStreamSynchronize(second));
    assertThat(pinned.getByteBuffer(0, LENGTH).get(0)).isEqualTo((byte) 3);
    assertThat(cuEventQuery(event)).isEqualTo(CUDA_SUCCESS);
    check(cuEventSynchronize(event));
    check(cuEventDestroy(event));
    check(cuStreamDestroy(second));
  }

  @Test
  void seesMemoryThatIsFreedWhileACopyIsPending() {
    CUdeviceptr other = new CUdeviceptr();
    check(cuMemAlloc(other, LENGTH));
    check(cuMemcpyHtoDAsync(other, pinned, LENGTH, stream));

    check(cuMemFree(other));
    assertThat(stub.count("freed while pending")).isEqualTo(freedWhilePending + 1);
    assertThat(cuMemcpyHtoDAsync(other, pinned, LENGTH, stream))
        .isEqualTo(CUDA_ERROR_INVALID_VALUE);
  }

  @Test
  void seesMemoryThatIsFreedWhileCuFileStillHasIt() {
    long before = stub.count("freed while registered");
    CuFile cuFile = CuFile.find().orElseThrow(AssertionError::new);
    Memory registered = new Memory();
    check(cuMemAlloc(registered, LENGTH));
    MemorySegment buffer = registered.segment();
    cuFile.openDriver();
    cuFile.registerBuffer(buffer);
    check(cuMemFree(registered));
    assertThat(stub.count("freed while registered")).isEqualTo(before + 1);
    cuFile.deregisterBuffer(buffer);
    check(cuMemAlloc(registered, LENGTH));
    buffer = registered.segment();
    cuFile.registerBuffer(buffer);
    cuFile.deregisterBuffer(buffer);
    check(cuMemFree(registered));
    assertThat(stub.count("freed while registered")).isEqualTo(before + 1);
    cuFile.closeDriver();
  }

  /// Device memory whose address the test can read.
  private static final class Memory extends CUdeviceptr {
    MemorySegment segment() {
      return MemorySegment.ofAddress(getNativePointer()).reinterpret(LENGTH);
    }
  }

  @Test
  void countsCopiesFromMemoryThatIsNotPinned() {
    long before = stub.count("pageable copies");
    ByteBuffer pageable = ByteBuffer.allocateDirect(LENGTH);
    check(cuMemcpyHtoDAsync(memory, pinned, LENGTH, stream));
    assertThat(stub.count("pageable copies")).isEqualTo(before);
    check(cuMemcpyHtoDAsync(memory, Pointer.to(pageable), LENGTH, stream));
    check(cuStreamSynchronize(stream));
    assertThat(stub.count("pageable copies")).isEqualTo(before + 1);
  }

  @Test
  void refusesACallWithoutAContext() throws InterruptedException {
    int[] result = new int[1];
    Thread thread = new Thread(() -> result[0] = cuMemAlloc(new CUdeviceptr(), LENGTH));
    thread.start();
    thread.join();
    assertThat(result[0]).isEqualTo(CUDA_ERROR_INVALID_CONTEXT);
  }

  @Test
  void failsWhenAskedTo() {
    stub.clear();
    stub.fail("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY, 0);
    CUdeviceptr first = new CUdeviceptr();
    check(cuMemAlloc(first, LENGTH));
    assertThat(cuMemAlloc(new CUdeviceptr(), LENGTH)).isEqualTo(CUDA_ERROR_OUT_OF_MEMORY);
    assertThat(stub.calls("cuMemAlloc")).isEqualTo(2);
    check(cuMemFree(first));
  }

  @Test
  void hasSoMuchMemoryAndNoMore() {
    long[] free = new long[1];
    long[] total = new long[1];
    check(cuMemGetInfo(free, total));
    assertThat(free[0]).isEqualTo(total[0] - LENGTH);
    assertThat(cuMemAlloc(new CUdeviceptr(), free[0] + 1)).isEqualTo(CUDA_ERROR_OUT_OF_MEMORY);
  }

  @Test
  void namesItsErrors() {
    String[] name = new String[1];
    check(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, name));
    assertThat(name).containsExactly("CUDA_ERROR_ILLEGAL_ADDRESS");
  }

  private static void check(int result) {
    assertThat(result).isEqualTo(CUDA_SUCCESS);
  }
}
