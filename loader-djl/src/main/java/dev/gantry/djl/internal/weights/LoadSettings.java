// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.Optional;
import java.util.function.Consumer;

/// The settings of a load of weights, made of [LoadOptions][dev.gantry.djl.LoadOptions].
/// Immutable.
///
/// @param device the device of the arrays; empty for the manager's device
/// @param partial whether parameters may lack a tensor, and tensors a parameter
/// @param skipMismatched whether a parameter may have another shape than its tensor; such a
///     parameter keeps its value
/// @param lazy whether files are mapped rather than read
/// @param report receives the report of the transfer
/// @param byOptions whether the caller has the options of a load, which errors then advise
public record LoadSettings(
    Optional<ai.djl.Device> device,
    TypePolicy types,
    boolean partial,
    boolean skipMismatched,
    boolean lazy,
    TransferOptions transfer,
    Consumer<TransferReport> report,
    boolean byOptions) {
  public static final LoadSettings DEFAULTS =
      new LoadSettings(
          Optional.empty(),
          TypePolicy.NONE,
          false,
          false,
          false,
          TransferOptions.defaults(),
          _ -> {},
          false);

  public LoadSettings withTransfer(TransferOptions chosen) {
    return new LoadSettings(
        device, types, partial, skipMismatched, lazy, chosen, report, byOptions);
  }
}
