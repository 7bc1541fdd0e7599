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
import java.util.Optional;
import java.util.function.LongFunction;

/// A random number generator that a training draws from. The process has one generator of each
/// kind, which all trainers share. Call the methods only while no other thread draws numbers.
public sealed interface RandomSource {
  /// All generators that this trainer may draw from: libtorch's on the CPU and on each GPU that it
  /// uses, for dropout and initial values, and DJL's own in Java, for the order of samples.
  ///
  /// @throws dev.gantry.core.DeviceUnavailableException if DJL's libtorch cannot be used
  static List<RandomSource> of(Trainer trainer) {
    List<RandomSource> sources = new ArrayList<>();
    sources.add(new JavaRandom());
    sources.add(new TorchRandom(PyTorch.library(), Device.HOST));
    for (ai.djl.Device device : trainer.getDevices()) {
      if (device.isGpu()) {
        sources.add(new TorchRandom(PyTorch.library(), PyTorch.device(device)));
      }
    }
    return sources;
  }

  /// The generator's name, which is the same in any process: `java`, `torch/host`, `torch/cuda:0`.
  String name();

  /// The reason, in one line, why the state can be neither saved nor restored; empty if it can be.
  default Optional<String> absence() {
    return Optional.empty();
  }

  /// The generator's state now, in base 64. It has the same meaning in any process and fewer than
  /// 8000 characters. This call draws no number. May be called only if [#absence] is empty.
  default String state() {
    return Base64.getEncoder().encodeToString(read());
  }

  /// Sets the generator to a saved state. May be called only if [#absence] is empty.
  ///
  /// @param base64 a text that [#state] returned
  /// @throws MisuseException if the text is not a state of this generator. Nothing has changed
  ///     then
  default void restore(String base64) {
    write(decoded(base64));
  }

  /// Returns the bytes of a saved state.
  ///
  /// @throws MisuseException if the text is not a state of this generator
  default byte[] decoded(String base64) {
    byte[] bytes = {};
    boolean readable = true;
    try {
      bytes = Base64.getDecoder().decode(base64);
    } catch (IllegalArgumentException _) {
      readable = false;
    }
    if (!readable || !isValid(bytes)) {
      throw new MisuseException("the saved state does not fit the random generator " + name());
    }
    return bytes;
  }

  /// Whether these bytes can be a state of this generator.
  boolean isValid(byte[] saved);

  byte[] read();

  /// @param saved a valid state
  void write(byte[] saved);

  /// The generator of which DJL's samplers draw the order of an epoch when the epoch begins. Its
  /// state is the 48 bits of `java.util.Random`, as 8 bytes, big endian.
  ///
  /// A Gaussian number that `Random` has drawn in advance is not saved. In DJL, only the initial
  /// values of a truncated normal distribution use such numbers.
  record JavaRandom() implements RandomSource {
    /// The number that `Random#setSeed` mixes into a seed. The specification of `Random` states
    /// this number and the number of bits that are kept.
    private static final long MULTIPLIER = 0x5DEECE66DL;

    private static final long MASK = (1L << 48) - 1;

    @Override
    public String name() {
      return "java";
    }

    @Override
    public byte[] read() {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
        out.writeObject(RandomUtils.RANDOM);
      } catch (IOException fault) {
        throw new UncheckedIOException("writing to memory", fault);
      }
      // The serialized form is specified: its fields' values in the order of their names
      // (haveNextNextGaussian, nextNextGaussian, seed), then one byte that ends the object.
      long seed = ByteBuffer.wrap(bytes.toByteArray()).getLong(bytes.size() - 1 - Long.BYTES);
      return ByteBuffer.allocate(Long.BYTES).putLong(seed).array();
    }

    @Override
    public boolean isValid(byte[] saved) {
      return saved.length == Long.BYTES && (ByteBuffer.wrap(saved).getLong() & ~MASK) == 0;
    }

    @Override
    public void write(byte[] saved) {
      RandomUtils.RANDOM.setSeed(ByteBuffer.wrap(saved).getLong() ^ MULTIPLIER);
    }
  }

  /// libtorch's default generator of a device. DJL itself can only seed it.
  record TorchRandom(TorchLibrary torch, Device device) implements RandomSource {
    /// The alignment of a state, which suffices for a generator's words of 64 bits: libtorch reads
    /// them in place.
    private static final long ALIGNMENT = 64;

    /// `CPUGeneratorImplState` (ATen/CPUGeneratorImpl.cpp, torch 2.7): a Mersenne twister of 624
    /// words. Its fields in order: seed (8 bytes), numbers left (4), whether seeded (4), index of
    /// the next number (8), the words (8 each), and the state of normal distributions.
    private static final int CPU_BYTES = 5056;

    private static final int TWISTER_WORDS = 624;

    /// `CUDAGeneratorImpl::get_state` (torch 2.7): seed (8 bytes), offset (8), a multiple of 4.
    private static final int CUDA_BYTES = 16;

    @Override
    public String name() {
      return "torch/" + device;
    }

    @Override
    public Optional<String> absence() {
      return torch.generators().absence(device).or(() -> withState(this::strangeness));
    }

    private Optional<String> strangeness(long handle) {
      TensorShape shape = torch.shape(handle);
      return shape.equals(TensorShape.of(stateBytes()))
          ? Optional.empty()
          : Optional.of(
              "its state has the shape " + shape + " in this libtorch, not " + stateBytes());
    }

    @Override
    public byte[] read() {
      return withState(handle ->
          MemorySegment.ofAddress(torch.address(handle))
              .reinterpret(stateBytes())
              .toArray(ValueLayout.JAVA_BYTE));
    }

    /// @throws dev.gantry.core.TransferException if a kernel has failed on the device, since
    ///     libtorch would end the JVM in the call that follows
    private MemorySegment generator() {
      if (device instanceof Device.Cuda cuda) {
        CudaContext.of(cuda).synchronize();
      }
      return torch.generators().generator(device);
    }

    /// @param use receives the handle of the state's tensor, which is on the CPU
    private <T> T withState(LongFunction<T> use) {
      long handle = torch.generators().state(generator());
      try {
        return use.apply(handle);
      } finally {
        torch.delete(handle);
      }
    }

    @Override
    public void write(byte[] saved) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment bytes = arena.allocate(saved.length, ALIGNMENT);
        bytes.copyFrom(MemorySegment.ofArray(saved));
        long handle =
            torch.wrap(
                bytes.address(), Device.HOST, DType.U8, TensorShape.of(saved.length), () -> {});
        try {
          torch.generators().setState(generator(), handle);
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

    /// The fields of the state are checked, because libtorch would end the JVM on an invalid
    /// state.
    @Override
    public boolean isValid(byte[] saved) {
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
          // The numbers left and the next index add up to a constant. libtorch does not check
          // this, and would read past the words.
          boolean used = left > 0 && left <= TWISTER_WORDS && left + next == TWISTER_WORDS + 1;
          yield seeded && (fresh || used);
        }
        case Device.Cuda _ -> state.getLong(8) >= 0 && state.getLong(8) % 4 == 0;
      };
    }
  }
}
