package dev.gantry.djl.internal;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.core.internal.memory.CudaContext;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// libtorch's default generator of a device. DJL can seed it, and no more.
final class TorchRandom extends RandomSource {
  /// Long enough for a generator's words of 64 bits, which libtorch reads in place.
  private static final long ALIGNMENT = 64;

  /// `CPUGeneratorImplState` (ATen/CPUGeneratorImpl.cpp, torch 2.7): a Mersenne twister of 624
  /// words, one after the other seed (8 bytes), numbers left (4), whether seeded (4), index of the
  /// next number (8), the words (8 each), and what normal distributions keep.
  private static final int CPU_BYTES = 5056;

  private static final int TWISTER_WORDS = 624;

  /// `CUDAGeneratorImpl::get_state` (torch 2.7): seed (8 bytes), offset (8), a multiple of 4.
  private static final int CUDA_BYTES = 16;

  private final TorchLibrary torch;
  private final Device device;

  TorchRandom(TorchLibrary torch, Device device) {
    this.torch = torch;
    this.device = device;
  }

  @Override
  public String name() {
    return "torch/" + device;
  }

  /// @throws dev.gantry.core.TransferException if a kernel has failed on the device: libtorch would
  ///     end the process on being asked then
  @Override
  public State state() {
    TorchGenerators generators = torch.generators();
    if (device instanceof Device.Cuda cuda && generators.absence(device).isEmpty()) {
      CudaContext.of(cuda).synchronize();
    }
    return generators
        .absence(device)
        .<State>map(State.Absent::new)
        .orElseGet(() -> read(generators.generator(device)));
  }

  private State read(MemorySegment generator) {
    long handle = torch.generators().state(generator);
    try {
      long[] shape = torch.shape(handle).toArray();
      if (shape.length != 1 || shape[0] != stateBytes()) {
        return new State.Absent(
            "its state has the shape "
                + torch.shape(handle)
                + " in this libtorch, not "
                + stateBytes());
      }
      return State.Known.of(
          MemorySegment.ofAddress(torch.address(handle))
              .reinterpret(stateBytes())
              .toArray(ValueLayout.JAVA_BYTE));
    } finally {
      torch.delete(handle);
    }
  }

  @Override
  void write(byte[] saved) {
    if (state() instanceof State.Absent(String reason)) {
      throw new MisuseException("the generator " + name() + " cannot be restored: " + reason);
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(saved.length, ALIGNMENT);
      bytes.copyFrom(MemorySegment.ofArray(saved));
      long handle =
          torch.wrap(bytes.address(), Device.HOST, DType.U8, Shape.of(saved.length), () -> {});
      try {
        torch.generators().setState(torch.generators().generator(device), handle);
      } finally {
        torch.delete(handle);
      }
    }
  }

  private int stateBytes() {
    return switch (device) {
      case Device.Host() -> CPU_BYTES;
      case Device.Cuda _ -> CUDA_BYTES;
    };
  }

  /// libtorch would end the process if they were not.
  @Override
  boolean isValid(byte[] saved) {
    if (saved.length != stateBytes()) {
      return false;
    }
    ByteBuffer state = ByteBuffer.wrap(saved).order(ByteOrder.nativeOrder());
    return switch (device) {
      case Device.Host() -> {
        int left = state.getInt(8);
        boolean seeded = state.getInt(12) == 1;
        long next = state.getLong(16);
        boolean fresh = left == 1 && next == 0;
        // One word less is left each time that the next moves on by one. libtorch does not check
        // that, and would read past the words.
        boolean used = left > 0 && left <= TWISTER_WORDS && left + next == TWISTER_WORDS + 1;
        yield seeded && (fresh || used);
      }
      case Device.Cuda _ -> state.getLong(8) >= 0 && state.getLong(8) % 4 == 0;
    };
  }
}
