package dev.gantry.djl.internal;

import ai.djl.training.Trainer;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/// A generator of random numbers that a training draws from. There is one of each in the process,
/// whatever trainer uses it. Not while another thread draws numbers.
public abstract sealed class RandomSource permits JavaRandom, TorchRandom {
  /// Where a generator stands.
  public sealed interface State {
    /// It can be saved, and will go on from here when it is restored.
    ///
    /// @param base64 the same generator's in any process; under 8000 characters
    record Known(String base64) implements State {
      static Known of(byte[] bytes) {
        return new Known(Base64.getEncoder().encodeToString(bytes));
      }
    }

    /// It cannot be saved.
    ///
    /// @param reason one line for a person
    record Absent(String reason) implements State {}
  }

  /// All that this trainer may draw from: libtorch's on the CPU and on each GPU that it uses, for
  /// dropout and initial values, and DJL's own in Java, for the order of samples.
  ///
  /// @throws dev.gantry.core.DeviceUnavailableException if DJL's libtorch cannot be used
  public static List<RandomSource> of(Trainer trainer) {
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

  /// Its name, the same in any process: `java`, `torch/host`, `torch/cuda:0`.
  public abstract String name();

  /// Where it stands now. Asking draws nothing.
  public abstract State state();

  /// Lets the generator go on from a state that was saved.
  ///
  /// @param base64 as [State.Known] has it
  /// @throws MisuseException if that is no state of this generator, or it cannot be restored here.
  ///     Nothing has changed then
  public final void restore(String base64) {
    write(decoded(base64));
  }

  /// Changes nothing.
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
}
