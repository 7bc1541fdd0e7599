// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import dev.gantry.core.TransferException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// cuFile and the CUDA driver together: a file's bytes are read into device memory and written
/// from it.
@Tag("gpu")
class CuFileDeviceTest {
  // The length is a multiple of the 64 KiB that a GPU's BAR maps in one piece.
  private static final int LENGTH = 2 * 65536;

  private final CUdevice device = new CUdevice();
  private final Memory memory = new Memory();
  private CuFile cuFile;

  /// Device memory whose address the test can read.
  private static final class Memory extends CUdeviceptr {
    MemorySegment segment() {
      long aligned = Math.ceilDiv(getNativePointer(), 65536) * 65536;
      return MemorySegment.ofAddress(aligned).reinterpret(LENGTH);
    }

    CUdeviceptr pointer() {
      return withByteOffset(segment().address() - getNativePointer());
    }
  }

  @BeforeEach
  void setUp() {
    cuFile = CuFile.find().orElseThrow(AssertionError::new);
    CUcontext context = new CUcontext();
    check(JCudaDriver.cuInit(0));
    check(JCudaDriver.cuDeviceGet(device, 0));
    check(JCudaDriver.cuDevicePrimaryCtxRetain(context, device));
    check(JCudaDriver.cuCtxSetCurrent(context));
    check(JCudaDriver.cuMemAlloc(memory, LENGTH + 65536));
    cuFile.openDriver();
  }

  @AfterEach
  void tearDown() {
    cuFile.closeDriver();
    check(JCudaDriver.cuMemFree(memory));
    check(JCudaDriver.cuDevicePrimaryCtxRelease(device));
  }

  @Test
  void readsIntoDeviceMemoryAndWritesFromIt(@TempDir Path folder) throws IOException {
    byte[] bytes = new byte[LENGTH];
    new Random(11).nextBytes(bytes);
    Path from = Files.write(folder.resolve("from"), bytes);
    Path to = Files.createFile(folder.resolve("to"));
    MemorySegment buffer = memory.segment();
    try (TestFile in = TestFile.open(from);
        TestFile out = TestFile.open(to);
        CuFileHandle inHandle = register(in);
        CuFileHandle outHandle = register(out)) {
      cuFile.registerBuffer(buffer);
      assertThat(cuFile.read(inHandle, buffer, 65536, 65536, 0)).isEqualTo(65536);
      assertThat(cuFile.read(inHandle, buffer, 65536, 0, 65536)).isEqualTo(65536);
      assertThat(cuFile.write(outHandle, buffer, LENGTH, 0, 0)).isEqualTo(LENGTH);
      cuFile.deregisterBuffer(buffer);
    }
    byte[] swapped = new byte[LENGTH];
    System.arraycopy(bytes, 65536, swapped, 0, 65536);
    System.arraycopy(bytes, 0, swapped, 65536, 65536);
    byte[] onDevice = new byte[LENGTH];
    check(JCudaDriver.cuMemcpyDtoH(Pointer.to(onDevice), memory.pointer(), LENGTH));
    assertThat(onDevice).isEqualTo(swapped);
    assertThat(Files.readAllBytes(to)).isEqualTo(swapped);
  }

  private CuFileHandle register(TestFile file) {
    try {
      return cuFile.registerHandle(file.path(), file.descriptor());
    } catch (TransferException e) {
      // cuFile refuses files in containers without udev's database, and on tmpfs; other tests show
      // that loads then use another transport.
      return abort("cuFile cannot have files here: " + e.getMessage());
    }
  }

  private static void check(int result) {
    assertThat(result).isEqualTo(CUresult.CUDA_SUCCESS);
  }
}
