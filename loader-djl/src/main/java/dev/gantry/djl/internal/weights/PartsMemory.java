// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.LoadMemory;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.internal.weights.LoadPart.Piece;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.spi.StoredTensor;
import java.util.List;

/// The memory that a pipelined load takes whose arrays change their types.
///
/// @param options of the load
/// @param partOptions of each of its parts
record PartsMemory(
    GantrySession session,
    Device device,
    boolean lazy,
    Scales scales,
    List<LoadPart> parts,
    TransferOptions options,
    TransferOptions partOptions) {
  /// The memory that a part takes.
  ///
  /// @param load while it is loaded, and until its user closes it
  /// @param made what its user makes of it
  /// @param stays of both, when it is closed
  private record Use(LoadMemory load, MemoryUse made, MemoryUse stays) {}

  /// @param casts whether to count the arrays that the engine makes by casts: it may have their memory
  ///     already
  MemoryUse most(List<TensorRequest> requests, boolean casts) {
    LoadMemory factors =
        memory(
            requests.stream()
                .filter(TensorRequest::isConverted)
                .flatMap(request -> scales.scalesOf(request.tensor().name()).stream())
                .toList(),
            options);
    List<Use> uses = parts.stream().map(part -> use(part.pieces().getFirst(), casts)).toList();
    return session
        .forecast()
        .atOnce(factors.most().max(factors.stays().plus(most(uses))), device, options);
  }

  private LoadMemory memory(List<StoredTensor> tensors, TransferOptions transfer) {
    return LoadedTensors.memory(session, tensors, device, lazy, transfer);
  }

  private static MemoryUse most(List<Use> parts) {
    MemoryUse most = MemoryUse.NOTHING;
    MemoryUse stayed = MemoryUse.NOTHING;
    for (int i = 0; i < parts.size(); i++) {
      Use part = parts.get(i);
      MemoryUse beside = stayed;
      for (Use next : parts.subList(i + 1, Math.min(parts.size(), i + PipelinedLoad.DEPTH))) {
        beside = beside.plus(next.load().most());
      }
      most = most.max(beside.plus(part.load().most()));
      most = most.max(beside.plus(part.load().stays()).plus(part.made()));
      stayed = stayed.plus(part.stays());
    }
    return most;
  }

  private Use use(List<Piece> part, boolean casts) {
    long made = 0;
    long madeByEngine = 0;
    boolean madeStays = false;
    for (Piece piece : part) {
      TensorRequest request = piece.rows();
      if (request.changes()) {
        if (request.isConverted()) {
          made = TypeChanges.endOf(made, request);
          madeStays |= !request.isDouble();
        }
        if (casts && (!request.isConverted() || request.isDouble())) {
          madeByEngine += request.typeBytes();
        }
      }
    }
    LoadMemory load =
        memory(part.stream().map(piece -> piece.rows().tensor()).toList(), partOptions);
    MemoryUse engine = MemoryUse.on(device, madeByEngine);
    return new Use(
        load,
        MemoryUse.on(device, made).plus(engine),
        load.stays(i -> !part.get(i).rows().changes())
            .plus(MemoryUse.on(device, madeStays ? made : 0))
            .plus(engine));
  }
}
