// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.training.Trainer;
import ai.djl.util.RandomUtils;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchGenerators;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/// A random number generator that a training draws from. The process has one of each, which all
/// trainers share. Call it only while no other thread draws numbers.
public abstract sealed class RandomSource {
  /// A generator's state.
  public sealed interface State {
    /// A state that can be saved and restored.
    ///
    /// @param base64 means the same in any process; under 8000 characters
    record Known(String base64) implements State {
      static Known of(byte[] bytes) {
        return new Known(Base64.getEncoder().encodeToString(bytes));
      }
    }

    /// No state: it cannot be saved.
    ///
    /// @param reason one line for a message
    record Absent(String reason) implements State {}
  }

  /// All generators that this trainer may draw from: libtorch's on the CPU and on each GPU that it
  /// uses, for dropout and initial values, and DJL's own in Java, for the order of samples.
  ///
  /// @throws dev.gantry.core.DeviceUnavailableException if DJL's libtorch cannot be used
  public static List<RandomSource> of(Trainer trainer) {
    List<RandomSource> sources = new ArrayList<>();
    sources.add(java());
    sources.add(torch(PyTorch.library(), Device.HOST));
    for (ai.djl.Device device : trainer.getDevices()) {
      if (device.isGpu()) {
        sources.add(torch(PyTorch.library(), PyTorch.device(device)));
      }
    }
    return sources;
  }

  /// DJL's generator in Java.
  static RandomSource java() {
    return new JavaRandom();
  }

  /// libtorch's default generator of a device.
  static RandomSource torch(TorchLibrary torch, Device device) {
    return new TorchRandom(torch, device);
  }

  /// Its name, the same in any process: `java`, `torch/host`, `torch/cuda:0`.
  public abstract String name();

  /// Its state now. Asking draws no number.
  public abstract State state();

  /// Sets the generator to a state that was saved.
  ///
  /// @param base64 as [State.Known] has it
  /// @throws MisuseException if that is no state of this generator, or it cannot be restored here.
  ///     Nothing has changed then
  public final void restore(String base64) {
    write(decoded(base64));
  }

  /// Checks a saved state and changes nothing.
  ///
  /// @throws MisuseException if that is no state of this generator
  public final void check(String base64) {
    var _ = decoded(base64);
  }

  private byte[] decoded(String base64) {
    byte[] bytes = {};
    boolean readable = true;
    try {
      bytes = Base64.getDecoder().decode(base64);
    } catch (IllegalArgumentException _) {
      readable = false;
    }
    if (!readable || !isValid(bytes)) {
      throw new MisuseException("what was saved is no state of the generator " + name());
    }
    return bytes;
  }

  /// Whether these bytes can be a state of this generator.
  abstract boolean isValid(byte[] saved);

  /// @param saved a valid state
  abstract void write(byte[] saved);

  /// DJL's samplers take the order of an epoch from this generator when the epoch begins. Its state
  /// is the 48 bits of `java.util.Random`, as 8 bytes, big endian.
  ///
  /// A Gaussian number that `Random` has drawn in advance is not kept. In DJL, only the initial
  /// values of a truncated normal distribution use those.
  private static final class JavaRandom extends RandomSource {
    /// The number that `Random#setSeed` mixes into a seed; this and the number of bits that it keeps are part
    /// of its specification.
    private static final long MULTIPLIER = 0x5DEECE66DL;

    private static final long MASK = (1L << 48) - 1;

    @Override
    public String name() {
      return "java";
    }

    @Override
    public State state() {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
        out.writeObject(RandomUtils.RANDOM);
      } catch (IOException fault) {
        throw new UncheckedIOException("writing to memory", fault);
      }
      // The serialized form is specified: its fields' values in the order of their names
      // (haveNextNextGaussian, nextNextGaussian, seed), then one byte that ends the object.
      long seed = ByteBuffer.wrap(bytes.toByteArray()).getLong(bytes.size() - 1 - Long.BYTES);
      return State.Known.of(ByteBuffer.allocate(Long.BYTES).putLong(seed).array());
    }

    @Override
    boolean isValid(byte[] saved) {
      return saved.length == Long.BYTES && (ByteBuffer.wrap(saved).getLong() & ~MASK) == 0;
    }

    @Override
    void write(byte[] saved) {
      RandomUtils.RANDOM.setSeed(ByteBuffer.wrap(saved).getLong() ^ MULTIPLIER);
    }
  }

  /// libtorch's default generator of a device. DJL itself can only seed it.
  private static final class TorchRandom extends RandomSource {
    /// Enough for a generator's words of 64 bits, which libtorch reads in place.
    private static final long ALIGNMENT = 64;

    /// `CPUGeneratorImplState` (ATen/CPUGeneratorImpl.cpp, torch 2.7): a Mersenne twister of 624
    /// words. One after the other: seed (8 bytes), numbers left (4), whether seeded (4), index of
    /// the next number (8), the words (8 each), and what normal distributions keep.
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

    /// @throws dev.gantry.core.TransferException if a kernel has failed on the device: libtorch
    ///     would end the JVM on being asked then
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
            torch.wrap(
                bytes.address(), Device.HOST, DType.U8, TensorShape.of(saved.length), () -> {});
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

    /// Checks the state's fields: libtorch would end the JVM on an invalid state.
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
          // When the next index moves on by one, one word less is left. libtorch does not check
          // that, and
          // would read past the words.
          boolean used = left > 0 && left <= TWISTER_WORDS && left + next == TWISTER_WORDS + 1;
          yield seeded && (fresh || used);
        }
        case Device.Cuda _ -> state.getLong(8) >= 0 && state.getLong(8) % 4 == 0;
      };
    }
  }
}
