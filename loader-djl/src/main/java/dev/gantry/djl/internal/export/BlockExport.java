// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.export;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.util.Pair;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.names.NamePattern;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.djl.internal.names.TensorNames;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.function.Supplier;

/// Turns parameters back into the tensors that name rules load them from: it undoes the rules'
/// transforms and gives the tensors their names. A parameter without transforms is exported as its
/// own array. A parameter with transforms is copied, and the copy lives until this is closed.
public final class BlockExport implements AutoCloseable {
  /// A parameter, or the section of it that comes from one tensor of a concatenation.
  private record Piece(String path, NameRules.Rule.Tensors rule, NDArray array) {
    TensorShape shape() {
      return PyTorch.shape(array.getShape());
    }

    /// Takes the array without its gradient, so that no operation on it is recorded.
    NDArray values() {
      return array.hasGradient() ? array.stopGradient() : array;
    }

    /// Runs `work`. If a transform refuses, the error names the parameter and the tensor.
    <T> T refusing(String tensor, Supplier<T> work) {
      try {
        return work.get();
      } catch (MisuseException refused) {
        throw refused(tensor, String.valueOf(refused.getMessage()));
      }
    }

    MisuseException refused(String tensor, String reason) {
      return new MisuseException(
          "parameter '%s' cannot be written as tensor '%s' by %s: %s"
              .formatted(path, tensor, rule, reason));
    }
  }

  private final SequencedMap<String, NDArray> parameters = new LinkedHashMap<>();
  private final NameRules rules;
  private final Map<String, TensorShape> known;
  private final TensorNames names;
  private final SequencedMap<String, NDArray> tensors = new LinkedHashMap<>();

  /// The exported tensors that are copies, and not a parameter's own array.
  private final List<NDArray> made = new ArrayList<>();

  private BlockExport(
      SequencedMap<String, NDArray> arrays, NameRules rules, Map<String, TensorShape> known) {
    this.rules = rules;
    this.known = known;
    this.names = new TensorNames(known.keySet(), rules);
    parameters.putAll(arrays);
  }

  /// @param known shapes of tensors by name, for shapes that the rules alone do not tell; a tensor
  ///     whose alias is one of these names is exported under that name
  /// @throws MisuseException if a parameter has no array or no rule that names a tensor, if two
  ///     parameters come from the same part of a tensor, if no parameter comes from a part of a
  ///     tensor, or if a tensor's shape cannot be derived
  public static BlockExport of(
      ParameterList list, NameRules rules, Map<String, TensorShape> known) {
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    for (Pair<String, Parameter> pair : list) {
      if (!pair.getValue().isInitialized()) {
        throw new MisuseException("parameter '" + pair.getKey() + "' has no array to be written");
      }
      arrays.put(pair.getKey(), pair.getValue().getArray());
    }
    return of(arrays, rules, known);
  }

  /// Does the same as [#of(ParameterList, NameRules, Map)], for arrays by the paths of parameters.
  public static BlockExport of(
      SequencedMap<String, NDArray> arrays, NameRules rules, Map<String, TensorShape> known) {
    BlockExport export = new BlockExport(arrays, rules, known);
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      export.addTensors();
      export.keepMade();
    }
    return export;
  }

  /// Returns the tensors by name, in the order of the parameters.
  public Map<String, NDArray> tensors() {
    return tensors;
  }

  @Override
  public void close() {
    Cleanup.forEach(made, NDArray::close);
  }

  private void addTensors() {
    SequencedMap<String, NameRules.Rule> matching = rules.matching(parameters.keySet());
    SequencedMap<String, List<Piece>> pieces = new LinkedHashMap<>();
    Map<String, String> owners = new HashMap<>();
    SequencedMap<String, String> ties = new LinkedHashMap<>();
    parameters.forEach((path, array) -> {
      switch (matching.get(path)) {
        case NameRules.Rule.Tensors made -> {
          List<String> filled = rules.tensors(path, made);
          String key = filled + "\0" + made.axis() + made.transforms();
          String owner = owners.putIfAbsent(key, path);
          if (owner != null && (!rules.strict() || haveSameMemory(array(owner), array))) {
            ties.put(path, owner);
          } else {
            addPieces(new Piece(path, made, array), filled, pieces);
          }
        }
        case NameRules.Rule.Tie tie ->
            ties.put(
                path, NamePattern.fill(tie.other(), tie.parameter().match(path).orElseThrow()));
        case NameRules.Rule.Constant _ -> {}
        case null -> addRest(path, array, pieces);
      }
    });
    ties.forEach(this::requireTied);
    pieces.forEach((name, parts) -> {
      String stored = names.find(name).orElse(name);
      if (tensors.put(stored, assembled(name, parts)) != null) {
        throw new MisuseException("two tensors of the rules count as '" + stored + "'");
      }
    });
  }

  /// Keeps the exported copies open, while the scope closes their intermediate arrays.
  private void keepMade() {
    Set<NDArray> own = Collections.newSetFromMap(new IdentityHashMap<>());
    own.addAll(parameters.values());
    for (NDArray tensor : tensors.values()) {
      if (!own.contains(tensor)) {
        NDScope.unregister(tensor);
        made.add(tensor);
      }
    }
  }

  private NDArray array(String path) {
    return Objects.requireNonNull(parameters.get(path), path);
  }

  private void addRest(String path, NDArray array, Map<String, List<Piece>> pieces) {
    if (rules.rest() != NameRules.Rest.SAME_NAME) {
      throw new MisuseException(
          "no rule names the tensor that parameter '" + path + "' becomes; give it one");
    }
    NameRules.Rule.Tensors same =
        new NameRules.Rule.Tensors(
            NamePattern.literal(path), List.of("same name"), 0, List.of(), false);
    addPieces(new Piece(path, same, array), List.of(path), pieces);
  }

  private void requireTied(String path, String other) {
    if (!parameters.containsKey(other)) {
      throw new MisuseException(
          "parameter '" + path + "' is tied to '" + other + "', which the block does not have");
    }
    if (!haveSameValues(array(path), array(other))) {
      throw new MisuseException(
          "parameter '%s' is tied to '%s' and has other values, which would be lost"
              .formatted(path, other));
    }
  }

  private static boolean haveSameValues(NDArray one, NDArray other) {
    if (haveSameMemory(one, other)) {
      return true;
    }
    if (!one.getShape().equals(other.getShape()) || one.getDataType() != other.getDataType()) {
      return false;
    }
    try (NDScope compared = new NDScope()) {
      compared.suppressNotUsedWarning();
      NDArray near = other.toDevice(one.getDevice(), false);
      // Two NaN are the same value here, since one of them is written for both parameters.
      NDArray both = one.isNaN().logicalAnd(near.isNaN());
      return one.eq(near).logicalOr(both).all().getBoolean();
    }
  }

  private static boolean haveSameMemory(NDArray one, NDArray other) {
    return one.getShape().equals(other.getShape())
        && one.getDevice().equals(other.getDevice())
        && TorchArrays.address(one) == TorchArrays.address(other);
  }

  /// Cuts a concatenated parameter into the sections of its tensors.
  private void addPieces(Piece whole, List<String> filled, Map<String, List<Piece>> pieces) {
    int axis = whole.rule().axis();
    int count = filled.size();
    if (count == 1) {
      pieces.computeIfAbsent(filled.getFirst(), _ -> new ArrayList<>()).add(whole);
      return;
    }
    TensorShape shape = whole.shape();
    if (axis >= shape.rank()) {
      throw whole.refused(filled.toString(), "the parameter has no axis " + axis);
    }
    List<Optional<TensorShape>> shapes = filled.stream().map(this::known).toList();
    boolean all = shapes.stream().allMatch(Optional::isPresent);
    if (!all && shape.dimension(axis) % count != 0) {
      throw whole.refused(
          filled.toString(),
          "axis %s of %s does not divide into %s equal parts; optLike gives the tensors' shapes"
              .formatted(axis, shape, count));
    }
    long first = 0;
    for (int i = 0; i < count; i++) {
      String name = filled.get(i);
      long size =
          all
              ? place(whole, name, shapes.get(i).orElseThrow()).value().dimension(axis)
              : shape.dimension(axis) / count;
      if (first + size > shape.dimension(axis)) {
        throw whole.refused(
            filled.toString(), "the tensors need more than the parameter's " + shape);
      }
      NDArray part =
          whole.values().get(TorchArrays.along(whole.array(), axis, first, first + size));
      pieces
          .computeIfAbsent(name, _ -> new ArrayList<>())
          .add(new Piece(whole.path(), whole.rule(), part));
      first += size;
    }
    if (first != shape.dimension(axis)) {
      throw whole.refused(filled.toString(), "the tensors are less than the parameter's " + shape);
    }
  }

  private Optional<TensorShape> known(String tensor) {
    return names.find(tensor).map(known::get);
  }

  private static Place place(Piece piece, String name, TensorShape tensor) {
    return piece.refusing(name, () -> Place.of(tensor, piece.rule().transforms()));
  }

  private NDArray assembled(String name, List<Piece> pieces) {
    Piece first = pieces.getFirst();
    if (pieces.size() == 1 && first.rule().transforms().isEmpty() && known(name).isEmpty()) {
      return first.array();
    }
    TensorShape shape = known(name).orElseGet(() -> inferred(name, pieces));
    List<Place> places = new ArrayList<>();
    for (Piece piece : pieces) {
      Place place = place(piece, name, shape);
      if (!place.value().equals(piece.shape())) {
        throw piece.refused(
            name,
            "the rule makes shape "
                + place.value()
                + " of the tensor's "
                + shape
                + ", but the parameter has "
                + piece.shape());
      }
      requireFits(name, piece, place, pieces, places);
      places.add(place);
    }
    long there = places.stream().mapToLong(Place::elements).sum();
    if (there != elements(places.getFirst().base())) {
      throw first.refused(
          name,
          "the parameters have %s of the %s elements of the tensor's shape %s"
              .formatted(there, elements(places.getFirst().base()), shape));
    }
    return places.getFirst().cut() == 0
        ? places.getFirst().undone(first.values())
        : joined(pieces, places);
  }

  /// @param others the places of the pieces before this piece
  private static void requireFits(
      String name, Piece piece, Place place, List<Piece> pieces, List<Place> others) {
    for (int i = 0; i < others.size(); i++) {
      Piece other = pieces.get(i);
      if (!others.get(i).wholeTransforms().equals(place.wholeTransforms())) {
        throw piece.refused(
            name, "the rule of '" + other.path() + "' reshapes the tensor in another way");
      }
      if (others.get(i).overlaps(place)) {
        throw piece.refused(
            name,
            "parameter '" + other.path() + "' is the same part of the tensor, by " + other.rule());
      }
      if (other.array().getDataType() != piece.array().getDataType()) {
        throw piece.refused(
            name,
            "the parameter has type %s, but parameter '%s' has type %s"
                .formatted(piece.array().getDataType(), other.path(), other.array().getDataType()));
      }
    }
  }

  private NDArray joined(List<Piece> pieces, List<Place> places) {
    Place first = places.getFirst();
    NDArray like = pieces.getFirst().array();
    ArrayKind kind = new ArrayKind(Optional.of(PyTorch.dtype(like.getDataType())), first.base());
    NDArray base = TorchArrays.create(like.getManager(), kind, like.getDevice());
    NDScope.register(base);
    for (int i = 0; i < pieces.size(); i++) {
      Place place = places.get(i);
      if (place.elements() > 0) {
        NDIndex index = new NDIndex();
        for (int axis = 0; axis < place.from().size(); axis++) {
          index.addSliceDim(place.from().get(axis), place.to().get(axis));
        }
        try (NDScope views = new NDScope()) {
          views.suppressNotUsedWarning();
          TorchArrays.copyInto(place.inBase(place.undone(pieces.get(i).values())), base, index);
        }
      }
    }
    return first.undoneWhole(base);
  }

  private static long elements(TensorShape shape) {
    return shape.elements().orElseThrow();
  }

  private static TensorShape inferred(String name, List<Piece> pieces) {
    Piece first = pieces.getFirst();
    List<Place.Size> all = new ArrayList<>(sizes(name, first));
    for (Piece piece : pieces) {
      List<Place.Size> sizes = sizes(name, piece);
      boolean fits = sizes.size() == all.size();
      for (int axis = 0; fits && axis < all.size(); axis++) {
        Place.Size both = all.get(axis).and(sizes.get(axis));
        fits = both != null;
        all.set(axis, both == null ? all.get(axis) : both);
      }
      if (!fits) {
        throw piece.refused(
            name,
            "the rule gives the tensor another shape than that of parameter '"
                + first.path()
                + "'");
      }
    }
    int unknown = all.indexOf(new Place.Size(0, false));
    if (unknown >= 0) {
      throw first.refused(
          name,
          "the rules do not tell the tensor's size along axis "
              + unknown
              + "; optLike gives the tensors' shapes");
    }
    return TensorShape.of(all.stream().mapToLong(Place.Size::size).toArray());
  }

  private static List<Place.Size> sizes(String name, Piece piece) {
    return piece.refusing(name, () -> Place.before(piece.shape(), piece.rule().transforms()));
  }
}
