"""How fields of built-in kinds merge; written by tools/kube_merge_table.py from k8s.io/kubernetes v1.36.3.

`field_types.py` reads it. A line is a message and what is not usual of its fields; usual are atomic
lists, and maps and objects whose fields have owners of their own. `!` alone: the object is atomic.
`FIELD=KEY,KEY:DEFAULT`: a list whose items have these keys. `FIELD=*`: a set. `FIELD=!`: an atomic
map. `FIELD=granular`: not atomic, though its message is. `+FIELD`: an object that is never absent.
`+FIELD:VALUE`: a value of a field that is not set.
"""

from typing import Final

MERGE_RULES: Final = """\
admissionregistration.AuditAnnotation +key:"" +valueExpression:""
admissionregistration.ExpressionWarning +fieldRef:"" +warning:""
admissionregistration.MatchCondition +name:"" +expression:""
admissionregistration.MatchResources !
admissionregistration.MutatingAdmissionPolicy +metadata +spec
admissionregistration.MutatingAdmissionPolicyBinding +metadata +spec
admissionregistration.MutatingAdmissionPolicySpec matchConditions=name:""
admissionregistration.MutatingWebhook matchConditions=name:"" +name:"" +clientConfig +sideEffects:null +admissionReviewVersions:null
admissionregistration.MutatingWebhookConfiguration webhooks=name:"" +metadata
admissionregistration.Mutation +patchType:""
admissionregistration.NamedRuleWithOperations !
admissionregistration.ParamKind !
admissionregistration.ParamRef !
admissionregistration.ServiceReference +namespace:"" +name:""
admissionregistration.ValidatingAdmissionPolicy +metadata +spec +status
admissionregistration.ValidatingAdmissionPolicyBinding +metadata +spec
admissionregistration.ValidatingAdmissionPolicyBindingSpec validationActions=*
admissionregistration.ValidatingAdmissionPolicySpec matchConditions=name:"" variables=name:""
admissionregistration.ValidatingAdmissionPolicyStatus conditions=type:""
admissionregistration.ValidatingWebhook matchConditions=name:"" +name:"" +clientConfig +sideEffects:null +admissionReviewVersions:null
admissionregistration.ValidatingWebhookConfiguration webhooks=name:"" +metadata
admissionregistration.Validation +expression:""
admissionregistration.Variable ! +name:"" +expression:""
apiextensions.CustomResourceColumnDefinition +name:"" +type:"" +jsonPath:""
apiextensions.CustomResourceConversion +strategy:""
apiextensions.CustomResourceDefinition +metadata +spec +status
apiextensions.CustomResourceDefinitionCondition +type:"" +status:"" +lastTransitionTime:null
apiextensions.CustomResourceDefinitionNames +plural:"" +kind:""
apiextensions.CustomResourceDefinitionSpec +group:"" +names +scope:"" +versions:null
apiextensions.CustomResourceDefinitionStatus conditions=type:"" +conditions:null +acceptedNames +storedVersions:null
apiextensions.CustomResourceDefinitionVersion +name:"" +served:false +storage:false
apiextensions.CustomResourceSubresourceScale +specReplicasPath:"" +statusReplicasPath:""
apiextensions.JSONSchemaProps x-kubernetes-validations=rule:""
apiextensions.SelectableField +jsonPath:""
apiextensions.ServiceReference +namespace:"" +name:""
apiextensions.ValidationRule +rule:""
apiextensions.WebhookConversion +conversionReviewVersions:null
apps.ControllerRevision +metadata +data:null +revision:0
apps.DaemonSet +metadata +spec +status
apps.DaemonSetCondition +type:"" +status:"" +lastTransitionTime:null
apps.DaemonSetSpec +selector:null +template +updateStrategy
apps.DaemonSetStatus conditions=type:"" +currentNumberScheduled:0 +numberMisscheduled:0 +desiredNumberScheduled:0 +numberReady:0
apps.Deployment +metadata +spec +status
apps.DeploymentCondition +type:"" +status:"" +lastUpdateTime:null +lastTransitionTime:null
apps.DeploymentSpec +selector:null +template +strategy
apps.DeploymentStatus conditions=type:""
apps.ReplicaSet +metadata +spec +status
apps.ReplicaSetCondition +type:"" +status:"" +lastTransitionTime:null
apps.ReplicaSetSpec +selector:null +template
apps.ReplicaSetStatus conditions=type:"" +replicas:0
apps.StatefulSet +metadata +spec +status
apps.StatefulSetCondition +type:"" +status:"" +lastTransitionTime:null
apps.StatefulSetOrdinals +start:0
apps.StatefulSetSpec +selector:null +template +serviceName:"" +updateStrategy
apps.StatefulSetStatus conditions=type:"" +replicas:0 +availableReplicas:0
authentication.SelfSubjectReview +metadata +status
authentication.SelfSubjectReviewStatus +userInfo
authentication.TokenRequest +metadata +spec +status
authentication.TokenRequestSpec +audiences:null +expirationSeconds:null +boundObjectRef:null
authentication.TokenRequestStatus +token:"" +expirationTimestamp:null
authentication.TokenReview +metadata +spec +status
authentication.TokenReviewStatus +user
authorization.LocalSubjectAccessReview +metadata +spec +status
authorization.NonResourceRule +verbs:null
authorization.ResourceRule +verbs:null
authorization.SelfSubjectAccessReview +metadata +spec +status
authorization.SelfSubjectRulesReview +metadata +spec +status
authorization.SubjectAccessReview +metadata +spec +status
authorization.SubjectAccessReviewStatus +allowed:false
authorization.SubjectRulesReviewStatus +resourceRules:null +nonResourceRules:null +incomplete:false
autoscaling.CrossVersionObjectReference ! +kind:"" +name:""
autoscaling.HorizontalPodAutoscaler +metadata +spec +status
autoscaling.HorizontalPodAutoscalerSpec +scaleTargetRef +maxReplicas:0
autoscaling.HorizontalPodAutoscalerStatus +currentReplicas:0 +desiredReplicas:0
autoscaling.Scale +metadata +spec +status
autoscaling.ScaleStatus +replicas:0
autoscaling2.ContainerResourceMetricSource +name:"" +target +container:""
autoscaling2.ContainerResourceMetricStatus +name:"" +current +container:""
autoscaling2.CrossVersionObjectReference +kind:"" +name:""
autoscaling2.ExternalMetricSource +metric +target
autoscaling2.ExternalMetricStatus +metric +current
autoscaling2.HPAScalingPolicy +type:"" +value:0 +periodSeconds:0
autoscaling2.HorizontalPodAutoscaler +metadata +spec +status
autoscaling2.HorizontalPodAutoscalerCondition +type:"" +status:"" +lastTransitionTime:null
autoscaling2.HorizontalPodAutoscalerSpec +scaleTargetRef +maxReplicas:0
autoscaling2.HorizontalPodAutoscalerStatus conditions=type:"" +desiredReplicas:0 +currentMetrics:null
autoscaling2.MetricIdentifier +name:""
autoscaling2.MetricSpec +type:""
autoscaling2.MetricStatus +type:""
autoscaling2.MetricTarget +type:""
autoscaling2.ObjectMetricSource +describedObject +target +metric
autoscaling2.ObjectMetricStatus +metric +current +describedObject
autoscaling2.PodsMetricSource +metric +target
autoscaling2.PodsMetricStatus +metric +current
autoscaling2.ResourceMetricSource +name:"" +target
autoscaling2.ResourceMetricStatus +name:"" +current
batch.CronJob +metadata +spec +status
batch.CronJobSpec +schedule:"" +jobTemplate
batch.Job +metadata +spec +status
batch.JobCondition +type:"" +status:"" +lastProbeTime:null +lastTransitionTime:null
batch.JobSpec +template
batch.JobTemplateSpec +metadata +spec
batch.PodFailurePolicy +rules:null
batch.PodFailurePolicyOnExitCodesRequirement values=* +operator:"" +values:null
batch.PodFailurePolicyOnPodConditionsPattern +type:"" +status:""
batch.PodFailurePolicyRule +action:""
batch.SuccessPolicy +rules:null
batch.UncountedTerminatedPods failed=* succeeded=*
coordination.Lease +metadata +spec
core.AWSElasticBlockStoreVolumeSource +volumeID:""
core.AppArmorProfile +type:""
core.AttachedVolume +name:"" +devicePath:""
core.AzureDiskVolumeSource +diskName:"" +diskURI:""
core.AzureFilePersistentVolumeSource +secretName:"" +shareName:"" +secretNamespace:null
core.AzureFileVolumeSource +secretName:"" +shareName:""
core.Binding +metadata +target
core.CSIPersistentVolumeSource +driver:"" +volumeHandle:""
core.CSIVolumeSource +driver:""
core.CephFSPersistentVolumeSource +monitors:null
core.CephFSVolumeSource +monitors:null
core.CinderPersistentVolumeSource +volumeID:""
core.CinderVolumeSource +volumeID:""
core.ClusterTrustBundleProjection +path:""
core.ConfigMap +metadata
core.ConfigMapKeySelector ! +key:""
core.ConfigMapList +metadata +items:null
core.ConfigMapNodeConfigSource +namespace:"" +name:"" +kubeletConfigKey:""
core.Container env=name:"" ports=containerPort:0,protocol:"TCP" volumeDevices=devicePath:"" volumeMounts=mountPath:"" +name:"" +resources
core.ContainerExtendedResourceRequest +containerName:"" +resourceName:"" +requestName:""
core.ContainerImage +names:null
core.ContainerPort +containerPort:0
core.ContainerResizePolicy +resourceName:"" +restartPolicy:""
core.ContainerRestartRuleOnExitCodes values=*
core.ContainerStateRunning +startedAt:null
core.ContainerStateTerminated +exitCode:0 +startedAt:null +finishedAt:null
core.ContainerStatus allocatedResourcesStatus=name:"" volumeMounts=mountPath:"" +name:"" +state +lastState +ready:false +restartCount:0 +image:"" +imageID:""
core.DaemonEndpoint +Port:0
core.DownwardAPIVolumeFile +path:""
core.EndpointAddress ! +ip:""
core.EndpointPort ! +port:0
core.Endpoints +metadata
core.EnvVar +name:""
core.EphemeralContainer env=name:"" ports=containerPort:0,protocol:"TCP" volumeDevices=devicePath:"" volumeMounts=mountPath:""
core.EphemeralContainerCommon +name:"" +resources
core.Event +metadata +involvedObject +source +firstTimestamp:null +lastTimestamp:null +eventTime:null +reportingComponent:"" +reportingInstance:""
core.EventList +metadata +items:null
core.EventSeries +lastObservedTime:null
core.FileKeySelector ! +volumeName:"" +path:"" +key:""
core.FlexPersistentVolumeSource +driver:""
core.FlexVolumeSource +driver:""
core.GCEPersistentDiskVolumeSource +pdName:""
core.GRPCAction +port:0 +service:null
core.GitRepoVolumeSource +repository:""
core.GlusterfsPersistentVolumeSource +endpoints:"" +path:""
core.GlusterfsVolumeSource +endpoints:"" +path:""
core.HTTPGetAction +port:0
core.HTTPHeader +name:"" +value:""
core.HostAlias +ip:""
core.HostIP +ip:""
core.HostPathVolumeSource +path:""
core.ISCSIPersistentVolumeSource +targetPortal:"" +iqn:"" +lun:0
core.ISCSIVolumeSource +targetPortal:"" +iqn:"" +lun:0
core.KeyToPath +key:"" +path:""
core.LimitRange +metadata +spec
core.LimitRangeItem +type:""
core.LimitRangeSpec +limits:null
core.LinuxContainerUser +uid:0 +gid:0
core.LocalObjectReference !
core.LocalVolumeSource +path:""
core.ModifyVolumeStatus +status:""
core.NFSVolumeSource +server:"" +path:""
core.Namespace +metadata +spec +status
core.NamespaceCondition +type:"" +status:"" +lastTransitionTime:null
core.NamespaceList +metadata +items:null
core.NamespaceStatus conditions=type:""
core.Node +metadata +spec +status
core.NodeAddress +type:"" +address:""
core.NodeAllocatableResourceClaimStatus containers=* +resourceClaimName:"" +resources:null
core.NodeCondition +type:"" +status:"" +lastHeartbeatTime:null +lastTransitionTime:null
core.NodeDaemonEndpoints +kubeletEndpoint
core.NodeList +metadata +items:null
core.NodeRuntimeHandler +name:""
core.NodeSelector ! +nodeSelectorTerms:null
core.NodeSelectorRequirement +key:"" +operator:""
core.NodeSelectorTerm !
core.NodeSpec podCIDRs=*
core.NodeStatus addresses=type:"" conditions=type:"" +daemonEndpoints +nodeInfo
core.NodeSystemInfo +machineID:"" +systemUUID:"" +bootID:"" +kernelVersion:"" +osImage:"" +containerRuntimeVersion:"" +kubeletVersion:"" +kubeProxyVersion:"" +operatingSystem:"" +architecture:""
core.ObjectFieldSelector ! +fieldPath:""
core.ObjectReference !
core.PersistentVolume +metadata +spec +status
core.PersistentVolumeClaim +metadata +spec +status
core.PersistentVolumeClaimCondition +type:"" +status:"" +lastProbeTime:null +lastTransitionTime:null
core.PersistentVolumeClaimSpec +resources
core.PersistentVolumeClaimStatus conditions=type:""
core.PersistentVolumeClaimTemplate +metadata +spec
core.PersistentVolumeClaimVolumeSource +claimName:""
core.PersistentVolumeSpec claimRef=granular
core.PhotonPersistentDiskVolumeSource +pdID:""
core.Pod +metadata +spec +status
core.PodAffinityTerm +topologyKey:""
core.PodCondition +type:"" +status:"" +lastProbeTime:null +lastTransitionTime:null
core.PodExtendedResourceClaimStatus +requestMappings:null +resourceClaimName:""
core.PodIP +ip:""
core.PodList +metadata +items:null
core.PodOS +name:""
core.PodReadinessGate +conditionType:""
core.PodResourceClaim +name:""
core.PodResourceClaimStatus +name:""
core.PodSchedulingGate +name:""
core.PodSpec containers=name:"" ephemeralContainers=name:"" hostAliases=ip:"" imagePullSecrets=name:"" initContainers=name:"" nodeSelector=! resourceClaims=name:"" schedulingGates=name:"" topologySpreadConstraints=topologyKey:"",whenUnsatisfiable:"" volumes=name:"" +containers:null
core.PodStatus conditions=type:"" podIPs=ip:"" resourceClaimStatuses=name:""
core.PodTemplate +metadata +template
core.PodTemplateSpec +metadata +spec
core.PortStatus +port:0 +protocol:""
core.PortworxVolumeSource +volumeID:""
core.PreferredSchedulingTerm +weight:0 +preference
core.ProjectedVolumeSource +sources:null
core.QuobyteVolumeSource +registry:"" +volume:""
core.RBDPersistentVolumeSource +monitors:null +image:""
core.RBDVolumeSource +monitors:null +image:""
core.ReplicationController +metadata +spec +status
core.ReplicationControllerCondition +type:"" +status:"" +lastTransitionTime:null
core.ReplicationControllerSpec selector=!
core.ReplicationControllerStatus conditions=type:"" +replicas:0
core.ResourceClaim +name:""
core.ResourceFieldSelector ! +resource:"" +divisor:"0"
core.ResourceHealth +resourceID:""
core.ResourceQuota +metadata +spec +status
core.ResourceRequirements claims=name:""
core.ResourceStatus resources=resourceID:"" +name:""
core.ScaleIOPersistentVolumeSource +gateway:"" +system:"" +secretRef:null
core.ScaleIOVolumeSource +gateway:"" +system:"" +secretRef:null
core.ScopeSelector !
core.ScopedResourceSelectorRequirement +scopeName:"" +operator:""
core.SeccompProfile +type:""
core.Secret +metadata
core.SecretKeySelector ! +key:""
core.SecretReference !
core.Service +metadata +spec +status
core.ServiceAccount secrets=name +metadata
core.ServiceAccountTokenProjection +path:""
core.ServicePort +port:0 +targetPort:0
core.ServiceSpec ports=port:0,protocol:"TCP" selector=!
core.ServiceStatus conditions=type:"" +loadBalancer
core.SleepAction +seconds:0
core.Sysctl +name:"" +value:""
core.TCPSocketAction +port:0
core.Taint +key:"" +effect:""
core.TopologySelectorLabelRequirement +key:"" +values:null
core.TopologySelectorTerm !
core.TopologySpreadConstraint +maxSkew:0 +topologyKey:"" +whenUnsatisfiable:""
core.TypedLocalObjectReference ! +apiGroup:null +kind:"" +name:""
core.TypedObjectReference +apiGroup:null +kind:"" +name:""
core.Volume +name:""
core.VolumeDevice +name:"" +devicePath:""
core.VolumeMount +name:"" +mountPath:""
core.VolumeMountStatus +name:"" +mountPath:""
core.VsphereVirtualDiskVolumeSource +volumePath:""
core.WeightedPodAffinityTerm +weight:0 +podAffinityTerm
discovery.Endpoint addresses=* +addresses:null +conditions
discovery.EndpointPort !
discovery.EndpointSlice +metadata +addressType:"" +endpoints:null +ports:null
discovery.ForNode +name:""
discovery.ForZone +name:""
events.Event +metadata +eventTime:null +regarding +deprecatedSource +deprecatedFirstTimestamp:null +deprecatedLastTimestamp:null
events.EventSeries +count:0 +lastObservedTime:null
meta.Condition +type:"" +status:"" +lastTransitionTime:null +reason:"" +message:""
meta.FieldSelectorRequirement +key:"" +operator:""
meta.LabelSelector !
meta.LabelSelectorRequirement +key:"" +operator:""
meta.ObjectMeta finalizers=* ownerReferences=uid:""
meta.OwnerReference ! +apiVersion:"" +kind:"" +name:"" +uid:""
meta.ShardInfo +selector:""
meta.Status +metadata
networking.HTTPIngressPath +pathType:null +backend
networking.HTTPIngressRuleValue +paths:null
networking.IPBlock +cidr:""
networking.Ingress +metadata +spec +status
networking.IngressClass +metadata +spec
networking.IngressClassParametersReference +kind:"" +name:"" +scope:null
networking.IngressPortStatus +port:0 +protocol:""
networking.IngressServiceBackend +name:"" +port
networking.IngressStatus +loadBalancer
networking.NetworkPolicy +metadata +spec
networking.NetworkPolicySpec +podSelector
networking.ServiceBackendPort !
node.RuntimeClass +metadata +handler:""
node.Scheduling nodeSelector=!
policy.Eviction +metadata
policy.PodDisruptionBudget +metadata +spec +status
policy.PodDisruptionBudgetStatus conditions=type:"" +disruptionsAllowed:0 +currentHealthy:0 +desiredHealthy:0 +expectedPods:0
rbac.ClusterRole +metadata +rules:null
rbac.ClusterRoleBinding +metadata +roleRef
rbac.PolicyRule +verbs:null
rbac.Role +metadata +rules:null
rbac.RoleBinding +metadata +roleRef
rbac.RoleRef ! +apiGroup:"" +kind:"" +name:""
rbac.Subject ! +kind:"" +name:""
scheduling.PriorityClass +metadata +value:0
storage.CSIDriver +metadata +spec
storage.CSIDriverSpec volumeLifecycleModes=*
storage.CSINode +metadata +spec
storage.CSINodeDriver +name:"" +nodeID:"" +topologyKeys:null
storage.CSINodeSpec drivers=name:"" +drivers:null
storage.StorageClass +metadata +provisioner:""
storage.TokenRequest +audience:""
storage.VolumeAttachment +metadata +spec +status
storage.VolumeAttachmentSpec +attacher:"" +source +nodeName:""
storage.VolumeAttachmentStatus +attached:false
storage.VolumeAttributesClass +metadata +driverName:""
storage.VolumeError +time:null
"""
