// Wrapper module: pins the projects whose CustomResourceDefinitions the tests read. Nothing of them is built.
module fairlead.io/tools/kube/definitions

go 1.26.0

require (
	github.com/alibaba/kubedl v0.5.0
	github.com/fluid-cloudnative/fluid v1.0.8
	github.com/kserve/kserve v0.15.2
	github.com/kubeflow/spark-operator/v2 v2.2.1
	github.com/ray-project/kuberay/ray-operator v1.4.2
	volcano.sh/volcano v1.10.0
)
