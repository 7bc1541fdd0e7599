// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Random;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The registration cache with the driver and the libcufile of this machine, in compatibility
/// mode.
@Tag("gpu")
@ExtendWith(NoLeaks.class)
class RegisteredMemoryGpuTest {
  private static final Device.Cuda GPU = new Device.Cuda(0);
  private static final long MIB = 1 << 20;
  private static final int CU_MEM_ATTACH_GLOBAL = 1;

  private final CudaContext context = CudaContext.of(GPU);
  private final CudaDriver driver = context.driver();
  private CuFile cuFile;
  private CountedHardware hardware;
  private RegistrationCache.Load load;

  /// The driver and libcufile of this machine, with a count of registrations.
  private static final class CountedHardware implements RegistrationCache.Hardware {
    private final CuFileHardware real;
    private long registrations;

    CountedHardware(CuFileHardware real) {
      this.real = real;
    }

    @Override
    public Availability<Allocation> allocation(Device.Cuda device, long address) {
      return real.allocation(device, address);
    }

    @Override
    public long id(Device.Cuda device, long address) {
      return real.id(device, address);
    }

    @Override
    public long budgetBytes(Device.Cuda device) {
      return real.budgetBytes(device);
    }

    @Override
    public void register(Device.Cuda device, MemorySegment region) {
      real.register(device, region);
      registrations++;
    }

    @Override
    public void deregister(Device.Cuda device, MemorySegment region) {
      real.deregister(device, region);
    }
  }

  @BeforeEach
  void openDriver() {
    cuFile = CuFile.find().toOptional().orElse(null);
    assumeTrue(cuFile != null, "no libcufile");
    configure(true);
    cuFile.openDriver();
    hardware = new CountedHardware(new CuFileHardware(cuFile, _ -> 4096 * MIB));
    load = new RegistrationCache(hardware).begin();
  }

  private void configure(boolean on) {
    if (cuFile.hasFlags()) {
      cuFile.set(CuFile.Flag.PROPERTIES_ALLOW_COMPAT_MODE, true);
      cuFile.set(CuFile.Flag.FORCE_COMPAT_MODE, on);
    }
  }

  @AfterEach
  void closeDriver() {
    if (cuFile != null) {
      load.close();
      cuFile.closeDriver();
      configure(false);
    }
  }

  private final Map<Long, CudaDriver.DeviceMemory> allocated = new HashMap<>();

  private long allocate(long bytes) {
    try (var _ = context.enter()) {
      CudaDriver.DeviceMemory memory = driver.allocateDevice(bytes);
      allocated.put(memory.address(), memory);
      return memory.address();
    }
  }

  private void free(long address) {
    try (var _ = context.enter()) {
      driver.freeDevice(Objects.requireNonNull(allocated.remove(address)));
    }
  }

  private String use(long address, long bytes) {
    try (RegistrationCache.Use use = load.use(GPU, address, bytes)) {
      return use.refusal();
    }
  }

  @Test
  void memoryFreedAndAllocatedAgainAtOneAddressIsNoticed() {
    List<Long> others = new ArrayList<>();
    long again = 0;
    long first = 1;
    // The driver soon returns the same address, unless another thread's allocation takes a part of
    // it.
    for (int i = 0; i < 256 && again != first; i++) {
      first = allocate(2 * MIB);
      assertThat(use(first, 2 * MIB)).isEmpty();
      free(first);
      again = allocate(2 * MIB);
      others.add(again);
    }
    try {
      assumeTrue(again == first, "the driver did not give the address again");
      long before = hardware.registrations;
      assertThat(use(again, 2 * MIB)).isEmpty();
      assertThat(hardware.registrations).as("registered anew").isEqualTo(before + 1);
      assertThat(use(again, MIB)).isEmpty();
      assertThat(hardware.registrations).isEqualTo(before + 1);
    } finally {
      load.close();
      others.forEach(this::free);
    }
    assertThat(LiveResources.snapshot().registrations()).isZero();
  }

  @Test
  void aHundredThousandReadsOverAThousandBuffersRegisterEachOnce(@TempDir Path folder) {
    int buffers = 1000;
    long bytes = 64 << 10;
    Path file = TestFiles.write(folder.resolve("bytes"), 1, (int) MIB);
    List<Long> memory = new ArrayList<>();
    for (int i = 0; i < buffers; i++) {
      memory.add(allocate(bytes));
    }
    int descriptor = FileCalls.ofPlatform().open(file, FileCalls.O_RDONLY, 0);
    Optional<CuFileHandle> handle = handle(file, descriptor);
    try (var _ = context.enter()) {
      Random random = new Random(7);
      for (int i = 0; i < 100_000; i++) {
        int which = random.nextInt(buffers);
        try (RegistrationCache.Use use = load.use(GPU, memory.get(which), bytes)) {
          assertThat(use.refusal()).isEmpty();
          handle.ifPresent(open -> read(open, use, memory.get(which), which % 16 * bytes));
        }
      }
      if (handle.isPresent()) {
        byte[] expected = TestFiles.bytes(1, (int) MIB);
        for (int i = 0; i < buffers; i += 50) {
          int from = (int) (i % 16 * bytes);
          assertThat(first(memory.get(i)))
              .isEqualTo(Arrays.copyOfRange(expected, from, from + 4096));
        }
      }
    } finally {
      handle.ifPresent(CuFileHandle::close);
      FileCalls.ofPlatform().close(descriptor);
    }
    assertThat(hardware.registrations).isEqualTo(buffers);
    load.close();
    memory.forEach(this::free);
  }

  private void read(CuFileHandle file, RegistrationCache.Use use, long address, long from) {
    long offset = address - use.base().address();
    assertThat(cuFile.read(file, use.base(), 4096, from, offset)).isEqualTo(4096);
  }

  private byte[] first(long address) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(4096);
      driver.copyToHost(host.address(), address, 4096);
      return host.toArray(ValueLayout.JAVA_BYTE);
    }
  }

  /// Returns the handle of a file; empty if libcufile refuses the file because udev does not know
  /// its disk, as in many containers.
  private Optional<CuFileHandle> handle(Path file, int descriptor) {
    try {
      return Optional.of(cuFile.registerHandle(file, descriptor));
    } catch (TransferException _) {
      return Optional.empty();
    }
  }

  @Test
  void memoryThatCannotBeRegisteredIsRecognised() {
    try (var _ = context.enter()) {
      Pointer managed = new Pointer();
      check(JCudaDriver.cuMemAllocManaged(managed, 2 * MIB, CU_MEM_ATTACH_GLOBAL));
      assertThat(use(managed.address(), MIB)).contains("managed memory");
      check(JCudaDriver.cuMemFree(managed));

      CUstream stream = new CUstream();
      Pointer pooled = new Pointer();
      check(JCudaDriver.cuMemAllocAsync(pooled, 2 * MIB, stream));
      check(JCudaDriver.cuStreamSynchronize(stream));
      assertThat(use(pooled.address(), MIB)).contains("stream-ordered pool");
      check(JCudaDriver.cuMemFreeAsync(pooled, stream));
      check(JCudaDriver.cuStreamSynchronize(stream));
    }
    assertThat(use(4096, 1)).contains("is not memory of a CUDA device");
    assertThat(hardware.registrations).isZero();
  }

  @Test
  void memoryOfExpandableSegmentsIsRecognised() throws Throwable {
    try (var _ = context.enter();
        MappedMemory memory = new MappedMemory(2 * MIB)) {
      assertThat(use(memory.address(), MIB)).contains("expandable segments");
    }
  }

  @Test
  void partsOfOneAllocationShareItsRegistration() {
    long memory = allocate(4 * MIB);
    assertThat(use(memory + 100, 1000)).isEmpty();
    assertThat(use(memory + MIB, MIB)).isEmpty();
    assertThat(use(memory + 1000, 2 * MIB)).isEmpty();
    assertThat(LiveResources.snapshot().registrations()).isEqualTo(1);
    load.close();
    free(memory);
  }

  private static void check(int result) {
    assertThat(result).isEqualTo(CUresult.CUDA_SUCCESS);
  }

  /// Device memory whose address the test can read.
  private static final class Pointer extends CUdeviceptr {
    long address() {
      return getNativePointer();
    }
  }
}
