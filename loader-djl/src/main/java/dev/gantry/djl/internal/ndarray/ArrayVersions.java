// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchLibrary;
import dev.gantry.djl.internal.torch.TorchOperators;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// The versions of arrays at a time, by which a change of their values is noticed. The arrays may be closed
/// meanwhile. For one thread at a time.
public final class ArrayVersions implements AutoCloseable {
  private final TorchLibrary library;
  private final TorchOperators operators;
  private final List<Noted> noted = new ArrayList<>();

  /// @param handle a handle of its own, which keeps the tensor alive
  private record Noted(String name, long handle, long version) {}

  private ArrayVersions(TorchLibrary library, TorchOperators operators) {
    this.library = library;
    this.operators = operators;
  }

  /// Notes the versions of arrays. Closed arrays are passed over: nobody can change them.
  ///
  /// @return empty if libtorch does not tell the version of each: it does from 2.7 on
  public static Optional<ArrayVersions> of(Map<String, NDArray> arrays) {
    TorchLibrary library = PyTorch.library();
    return library
        .operators()
        .flatMap(operators -> {
          ArrayVersions versions = new ArrayVersions(library, operators);
          try {
            arrays.forEach(versions::note);
            return Optional.of(versions);
          } catch (TransferException e) {
            Cleanup.after(e, ArrayVersions::close, versions);
            return Optional.empty();
          }
        });
  }

  private void note(String name, NDArray array) {
    if (array.isReleased()) {
      return;
    }
    long handle = library.share(TorchArrays.torchArray(array).getHandle());
    Cleanup.orUndo(
        () -> noted.add(new Noted(name, handle, operators.version(handle))),
        () -> library.delete(handle));
  }

  /// Returns the name of an array that an operator has changed in place since; empty if there is none.
  public Optional<String> changed() {
    return noted.stream()
        .filter(each -> operators.version(each.handle()) != each.version())
        .map(Noted::name)
        .findFirst();
  }

  @Override
  public void close() {
    Cleanup.forEach(noted, each -> library.delete(each.handle()));
    noted.clear();
  }
}
