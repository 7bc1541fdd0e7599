package dev.gantry.djl.internal.torch;

/// What looking for libtorch in a folder came to.
public sealed interface TorchProbe {
  /// It is there and has all that is needed.
  record Found(TorchLibrary library) implements TorchProbe {}

  /// It cannot be used.
  ///
  /// @param reason one line for a person: the file that is not there, or the functions that it
  ///     lacks
  record Missing(String reason) implements TorchProbe {}
}
